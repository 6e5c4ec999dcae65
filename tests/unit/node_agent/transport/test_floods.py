"""Floods of connections on this machine's own sockets: what each may cost, and that none is left."""

import asyncio
import gc
import socket
import struct
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from node_agent.agent.process import limited_error_handler
from node_agent.ports import Address, Stream
from node_agent.ports.os_port import OsPort
from node_agent.ports.os_stream import FIRST_READ_AHEAD
from node_agent.transport.half_open import PER_PEER, STRANGERS
from tests.unit.connection_ends import Receiver, Sender, item

HOST = "127.0.0.1"
RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing resets."""


class Watched:
    """A loop, and what it complained of."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.complaints: list[dict[str, Any]] = []
        runner.get_loop().set_exception_handler(lambda loop, context: self.complaints.append(context))

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await scenario()

        self._runner.run(bounded())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield Watched(runner)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - sockets are closed when the kernel says so
        await asyncio.sleep(0.01)


def burst(at: Address, count: int, said: bytes = b"") -> list[socket.socket]:
    """For a thread of its own: where the server is slow to accept them, connecting blocks."""
    made = []
    for _ in range(count):
        made.append(socket.create_connection(at, timeout=20))
        if said:
            made[-1].sendall(said)
    return made


def connect_and_reset(at: Address, count: int, said: bytes) -> None:
    for _ in range(count):
        (each,) = burst(at, 1, said)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        each.close()


@pytest.mark.parametrize("said", [b"", b"x"], ids=["silent", "a byte"])
def test_connecting_and_resetting_leaves_neither_words_nor_descriptors(watched: Watched, said: bytes) -> None:
    async def scenario() -> None:
        receiver = Receiver(OsPort(HOST), peers=["192.0.2.1"])
        at = await receiver.server.open(0)
        before = descriptors()
        for _ in range(10):
            await asyncio.to_thread(connect_and_reset, at, 50, said)
        await until(lambda: descriptors() <= before and not receiver.server._connections)
        sender = Sender(OsPort(HOST), at)
        await sender.send(item(1))
        await until(lambda: receiver.taken == [1])
        assert receiver.failures == []
        assert 0 < receiver.refusals.total <= 500
        await sender.connection.close()
        await receiver.server.close()

    watched.run(scenario)
    assert watched.complaints == []


def test_a_stranger_costs_little_memory(watched: Watched) -> None:
    count = 50

    async def scenario() -> None:
        accepted: list[Stream] = []

        async def hold(stream: Stream) -> None:
            accepted.append(stream)
            await stream.read_exactly(1000)

        listener = await OsPort(HOST).listen(0, hold)
        gc.collect()
        tracemalloc.start()
        strangers = await asyncio.to_thread(burst, listener.address, count, b"x")
        await until(lambda: len(accepted) == count and all(stream.received for stream in accepted))
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert grown < count * 4 * FIRST_READ_AHEAD
        for each in strangers:
            each.close()
        listener.close()

    watched.run(scenario)


def test_a_burst_of_silent_connections_holds_few_descriptors(watched: Watched) -> None:
    async def scenario() -> None:
        receiver = Receiver(OsPort(HOST), peers=["192.0.2.1"])
        at = await receiver.server.open(0)
        before = descriptors()
        strangers: list[socket.socket] = []
        for _ in range(3):
            strangers += await asyncio.to_thread(burst, at, 100)
        most = before + len(strangers) + STRANGERS + PER_PEER
        await until(lambda: receiver.refusals.total >= len(strangers) - STRANGERS)
        async with asyncio.timeout(1):  # no one of them is waited for to hang up
            await until(lambda: descriptors() <= most)
        sender = Sender(OsPort(HOST), at)
        await sender.send(item(1))
        await until(lambda: receiver.taken == [1])
        for each in strangers:
            each.close()
        await sender.connection.close()
        await receiver.server.close()

    watched.run(scenario)
    assert watched.complaints == []


def test_complaints_are_bounded(capfd: pytest.CaptureFixture[str]) -> None:
    loop = asyncio.new_event_loop()
    try:
        complain = limited_error_handler(3)
        for number in range(1000):
            complain(loop, {"message": f"complaint {number}"})
    finally:
        loop.close()
    shown = capfd.readouterr().err
    assert "3 errors that nobody handled: further ones are not shown" in shown
    assert "complaint 3" not in shown and len(shown) < 1000
