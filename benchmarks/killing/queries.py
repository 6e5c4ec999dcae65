"""Queries whose results show what they were made from, and sinks that write down what they get.

Every result is a digest of its inputs, so that no two positions of a stream have the same.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

from node_agent.apps.dataflow.operators.registry import Context
from node_agent.query import Query, count, operator, sink, source

RATE = 20.0
FILLED = 400
WORK = 0.03
"""Seconds that an operator works on a result, so that a killed replica in use has work in progress."""


def captured(of: str, tau: int) -> bytes:
    return f"{of} {tau} ".encode().ljust(FILLED, b".")


def digest(*payloads: bytes) -> bytes:
    made = blake2b(digest_size=16)
    for payload in payloads:
        made.update(len(payload).to_bytes(4, "big") + payload)
    return made.hexdigest().encode()


@source(rate=RATE)
def sensor(tau: int, *, of: str, limit: int) -> bytes | None:
    return captured(of, tau) if tau <= limit else None


@operator
async def mark(payload: bytes, *, by: str, context: Context) -> bytes:
    await context.compute(WORK)
    return digest(by.encode(), payload)


@operator
async def thin(payload: bytes, *, context: Context) -> bytes | None:
    """Leaves out about every third tuple."""
    await context.compute(WORK)
    result = digest(payload)
    return result if result[0] % 3 else None


@operator
async def gather(payloads: list[bytes], *, context: Context) -> bytes:
    await context.compute(WORK)
    return digest(*payloads)


@operator
async def pair(left: bytes, right: bytes, *, context: Context) -> bytes:
    await context.compute(WORK)
    return digest(left, right)


@sink
def keep(payload: bytes, *, into: str) -> None:
    """Writes the tuple to a file; nowhere if ``into`` is empty."""
    if into:
        with Path(into).open("ab") as file:
            file.write(payload + b"\n")


SHAPES = ("chain", "window", "join", "fan_out", "fan_out_join")


def build(shape: str, limit: int, into: str = "") -> Query:
    """Builds the query. Sinks write to files in the folder ``into``, named like them."""
    query = Query(shape, reliability="exactly_once")

    def to(name: str) -> dict[str, Any]:
        return {"name": name, "into": f"{into}/{name}" if into else ""}

    readings = query.source(sensor, name="s", of="s", limit=limit)
    match shape:
        case "chain":
            readings.map(mark, name="a", by="a").map(thin, name="b").sink(keep, **to("z"))
        case "window":
            readings.map(mark, name="a", by="a").window(count(6, 3), gather, name="w").sink(keep, **to("z"))
        case "join":
            others = query.source(sensor, name="t", of="t", limit=limit).map(thin, name="b")
            readings.map(mark, name="a", by="a").join(others, using=pair, name="j").sink(keep, **to("z"))
        case "fan_out":
            readings.map(mark, name="a", by="a").sink(keep, **to("y"))
            readings.map(thin, name="b").sink(keep, **to("z"))
        case "fan_out_join":
            marked = readings.map(mark, name="a", by="a")
            marked.sink(keep, **to("y"))
            marked.join(readings.map(thin, name="b"), using=pair, name="j").sink(keep, **to("z"))
    return query
