"""Connections on this machine's own sockets: a peer process that stops, many tuples in little memory."""

import asyncio
import gc
import signal
import sys
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from node_agent.ports import Address
from node_agent.ports.os_port import OsPort
from node_agent.transport.limits import ConnectionLimits
from tests.unit.connection_ends import Receiver, Sender, item

HOST = "127.0.0.1"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as made:
        yield made


async def loopback(limits: ConnectionLimits) -> tuple[Receiver, Sender]:
    receiver = Receiver(OsPort(HOST), limits, [HOST])
    at = await receiver.server.open(0)
    return receiver, Sender(OsPort(HOST), at, limits)


async def until(met: Callable[[], bool], seconds: float = 5.0) -> None:
    for _ in range(round(seconds / 0.02)):
        if met():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within {seconds:g} s")


def test_tuples_of_all_sizes_arrive(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        receiver, sender = await loopback(ConnectionLimits())
        items = [item(tau, size=tau**3) for tau in range(1, 101)]
        await sender.send(*items)
        await until(lambda: len(receiver.taken) == 100)
        assert [each for batch in receiver.batches for each in batch.items] == items
        await sender.connection.close()
        await receiver.server.close()
        assert not receiver.failures and not receiver.refused

    runner.run(scenario())


@pytest.mark.parametrize("busy", [False, True])
def test_a_stopped_process_is_noticed(busy: bool) -> None:
    async def scenario() -> None:
        peer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.unit.silent_peer", HOST, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert peer.stdout is not None
            to = Address(HOST, int(await peer.stdout.readline()))
            sender = Sender(OsPort(HOST), to, ConnectionLimits(dead_after=1.0, window_bytes=2**26))
            await sender.send(item(1))
            await asyncio.sleep(1.5)
            assert sender.connected()
            peer.send_signal(signal.SIGSTOP)
            if busy:
                await sender.send(item(2, size=4_000_000))
            await until(lambda: not sender.connected())
            assert sender.lost == ([2] if busy else [])
            await sender.connection.close()
        finally:
            peer.kill()
            await peer.wait()

    run_real(scenario())


def run_real(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(scenario)


def test_a_hundred_thousand_tuples_leave_nothing_behind() -> None:
    async def scenario() -> None:
        receiver, sender = await loopback(ConnectionLimits(window_items=1024, window_bytes=2**20))
        batch = [item(tau) for tau in range(1, 501)]

        async def pass_batches(count: int) -> None:
            for _ in range(count):
                await sender.send(*batch)
                receiver.taken.clear()
                receiver.batches.clear()
            gc.collect()

        await pass_batches(20)
        tracemalloc.start()
        await pass_batches(1)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        await pass_batches(200)
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 500_000
        assert peak - before < 5_000_000
        await sender.connection.close()
        await receiver.server.close()

    run_real(scenario())
