"""A query in Python: a camera reads number plates, a radar measures speeds, who was too fast is reported."""

import json

from node_agent.query import Query, operator, seconds, sink, source


@source(rate=5)
def camera(tau: int) -> bytes:
    return json.dumps({"lane": tau % 3, "plate": f"B-{tau % 7:03}"}).encode()


@source(rate=10)
def radar(tau: int, *, fastest: int = 80) -> bytes:
    return json.dumps({"lane": tau % 3, "speed": 30 + 7 * tau % (fastest - 30)}).encode()


@operator
def plausible(payload: bytes) -> bool:
    """True keeps the tuple, False leaves a hole in the stream: what is missing was lost, not filtered."""
    return bool(json.loads(payload)["speed"] > 35)


def lane(payload: bytes) -> int:
    return int(json.loads(payload)["lane"])


@operator(key=lane)
def too_fast(car: bytes, echo: bytes, *, limit: int = 60) -> bytes | None:
    """Called for each car and echo of a window that were in the same lane."""
    seen, speed = json.loads(car), json.loads(echo)["speed"]
    return json.dumps({**seen, "speed": speed}).encode() if speed > limit else None


@operator
def summary(reports: list[bytes]) -> bytes:
    plates = sorted({json.loads(report)["plate"] for report in reports})
    return json.dumps({"reports": len(reports), "plates": plates}).encode()


@sink
def screen(payload: bytes) -> None:
    json.loads(payload)


def build(limit: int = 60) -> Query:
    query = Query("checkpoint")
    cars = query.source(camera)
    echoes = query.source(radar).map(plausible)
    reports = cars.join(echoes, using=too_fast, within=seconds(1), limit=limit, on_error="dead_letter")
    return reports.window(seconds(2), summary).sink(screen)
