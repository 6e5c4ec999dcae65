"""A link-state reader of somebody else that misbehaves: the agent only gets no new costs, and counts it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from node_agent.extensions import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.extensions.guard import MOST_IN_A_ROW, Foreign
from node_agent.linkstate.base import LINK_STATE_TIMEOUT
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.guarded import FailedReader, GuardedReader, checked_reading
from node_agent.linkstate.guarded_port import GuardedPort
from node_agent.linkstate.reader import Edge, Reading
from node_agent.linkstate.registry import open_link_state
from node_agent.linkstate.source import Downstream
from node_agent.ports import Address, ConnectionLost
from node_agent.ports.os_port import OsPort
from node_agent.ports.virtual.loop import VirtualLoop

FOREIGN = Foreign("link-state reader", "mine")


class Saying:
    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


def fails_at_once() -> Any:
    raise ValueError("no")


async def finds_nobody() -> Any:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, ConnectionRefusedError("nobody"))
    return await future


async def hangs() -> Any:
    await asyncio.sleep(3600)


def run(scenario: Any) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        (Saying(fails_at_once), "ValueError: no"),
        (Saying(lambda: 3), "read() returns int at once: write async def read"),
        (Saying(finds_nobody), "ConnectionRefusedError: nobody"),
        (Saying(hangs), "read() takes more than 4.5 s"),
        (object(), "AttributeError: 'object' object has no attribute 'read'"),
    ],
)
def test_a_failure_is_counted_before_the_caller_gives_up(reader: Any, error: str) -> None:
    async def scenario() -> None:
        failures = Failures()
        async with asyncio.timeout(LINK_STATE_TIMEOUT):
            with pytest.raises(FailedReader):
                await GuardedReader(reader, FOREIGN, failures).read()
        (failure,) = failures
        assert failure.error == error

    run(scenario())


def reading(*edges: Any, **changes: Any) -> Reading:
    row = {f"10.0.0.{i}": edge for i, edge in enumerate(edges)}
    return Reading({"10.0.0.9": row}, "etx", "mine")._replace(**changes)


@pytest.mark.parametrize(
    "found",
    [
        reading(Edge(10**400)),
        reading(Edge(1e308)),
        reading(Edge(float("nan"))),
        reading(Edge(1.0, hops=10**400)),
        reading(Edge(1.0, latency=1e10)),
        reading(Edge(cast(Any, "1"))),
        reading(metric="e" * 65),
        reading(source="e" * 65),
        reading(own_only=cast(Any, 1)),
    ],
)
def test_what_is_no_reading(found: Reading) -> None:
    with pytest.raises(ExtensionError, match=r"of an Edge|of a Reading"):
        checked_reading(found)


def test_a_good_reading_is_a_copy() -> None:
    found = reading(Edge(1), Edge(2.5, 0.5, 1, 2), Edge(1e9, hops=None))
    checked = checked_reading(found)
    assert checked == found
    found.edges["10.0.0.9"].clear()
    assert len(checked.edges["10.0.0.9"]) == 3
    assert all(isinstance(edge.cost, float) for edge in checked.edges["10.0.0.9"].values())


def test_a_reader_without_read_cannot_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "my_reader.py"

    async def opened(attribute: str) -> None:
        config = LinkStateConfig(f"{file}:{attribute}")
        async with open_link_state(config, OsPort("127.0.0.1"), {}, Downstream(), {}):
            pass

    file.write_text("class Reader:\n    pass\n\ndef make(source):\n    return Reader()\n")
    with pytest.raises(ExtensionError, match=r"my_reader.py:Reader has no method read\(\)"):
        asyncio.run(opened("Reader"))
    with pytest.raises(ExtensionError, match=r"cannot be opened: .*Reader has no method read\(\)"):
        asyncio.run(opened("make"))


class Wire:
    """Stands for a port: keeps the callbacks that it gets."""

    async def datagrams(self, port: int, on_datagram: Any) -> None:
        self.on_datagram = on_datagram

    async def listen(self, port: int, on_stream: Any) -> None:
        self.on_stream = on_stream


class StreamStub:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_callbacks_of_a_reader_are_guarded() -> None:
    wire, failures, calls = Wire(), Failures(), 0

    def on_datagram(data: bytes, source: Address) -> None:
        nonlocal calls
        calls += 1
        raise SystemExit(3)

    async def scenario() -> None:
        await GuardedPort(cast(Any, wire), FOREIGN, failures).datagrams(0, on_datagram)
        for _ in range(2 * MOST_IN_A_ROW):
            wire.on_datagram(b"", Address("10.0.0.1", 1))

    run(scenario())
    (failure,) = failures
    assert failure.error == "SystemExit: 3" and failure.left_out
    assert calls == failure.count == MOST_IN_A_ROW


def test_handlers_of_streams_are_guarded() -> None:
    wire, failures, stream = Wire(), Failures(), StreamStub()
    error: Exception = ValueError("no")

    async def on_stream(stream: Any) -> None:
        await asyncio.sleep(1)
        raise error

    async def scenario() -> None:
        nonlocal error
        await GuardedPort(cast(Any, wire), FOREIGN, failures).listen(0, on_stream)
        await wire.on_stream(stream)
        error = ConnectionLost("gone")
        with pytest.raises(ConnectionLost):
            await wire.on_stream(stream)

    run(scenario())
    assert stream.aborted
    assert [(failure.error, failure.count) for failure in failures] == [("ValueError: no", 1)]
