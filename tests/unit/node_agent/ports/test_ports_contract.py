"""What an agent may rely on, whatever it runs on: the same scenarios on real sockets and in virtual time."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from node_agent.ports import (
    Address,
    ConnectionLost,
    EndOfStream,
    Port,
    Stream,
    TimedOut,
    Unreachable,
)
from tests.unit.worlds import OsWorld, VirtualWorld, World

TIMEOUT = 5.0


def uvloop_world() -> World:
    return OsWorld(uvloop.new_event_loop)


@pytest.fixture(params=[OsWorld, uvloop_world, VirtualWorld], ids=["os", "uvloop", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    make: Callable[[], World] = request.param
    world = make()
    yield world
    world.close()


async def echo(stream: Stream) -> None:
    while True:
        await stream.write(await stream.read_exactly(1))


@asynccontextmanager
async def both_ends(a: Port, b: Port) -> AsyncIterator[tuple[Stream, Stream]]:
    """A connection from ``a``, and the other end of it."""
    accepted: asyncio.Queue[Stream] = asyncio.Queue()

    async def hold(stream: Stream) -> None:
        await accepted.put(stream)
        await asyncio.Event().wait()

    listener = await b.listen(0, hold)
    near = await a.connect(listener.address, TIMEOUT)
    try:
        yield near, await accepted.get()
    finally:
        near.abort()
        listener.close()


def test_bytes_come_back_from_an_echo(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        listener = await b.listen(0, echo)
        assert listener.address.host == b.host
        stream = await a.connect(listener.address, TIMEOUT)
        assert stream.peer == listener.address
        await stream.write(b"hello")
        assert await stream.read_exactly(2) == b"he"
        assert await stream.read_exactly(3) == b"llo"
        stream.close()
        listener.close()

    world.run(scenario)


def test_the_accepting_side_knows_its_peer(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (_, far):
            assert far.peer.host == a.host

    world.run(scenario)


def test_a_node_can_connect_to_itself(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        listener = await a.listen(0, echo)
        stream = await a.connect(listener.address, TIMEOUT)
        await stream.write(b"x")
        assert await stream.read_exactly(1) == b"x"
        stream.close()
        listener.close()

    world.run(scenario)


def test_a_big_transfer_arrives_whole_and_the_writer_waits_for_the_reader(world: World) -> None:
    chunk, chunks = bytes(range(256)) * 256, 300

    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            written = 0

            async def write() -> None:
                nonlocal written
                for _ in range(chunks):
                    await near.write(chunk)
                    written += 1

            writing = asyncio.create_task(write())
            await a.sleep(0.5)
            assert written < chunks  # nobody reads yet: buffers are full, the writer waits
            for _ in range(chunks):
                assert await far.read_exactly(len(chunk)) == chunk
            await writing

    world.run(scenario)


def test_one_read_may_be_longer_than_any_buffer(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            writing = asyncio.create_task(near.write(b"z" * 2_000_000))
            assert await far.read_exactly(2_000_000) == b"z" * 2_000_000
            await writing

    world.run(scenario)


def test_nobody_listens(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        listener = await b.listen(0, echo)
        listener.close()
        listener.close()
        with pytest.raises(Unreachable):
            await a.connect(listener.address, TIMEOUT)

    world.run(scenario)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_addresses_that_cannot_be(world: World, port: int) -> None:
    async def scenario(a: Port, b: Port) -> None:
        with pytest.raises(Unreachable):
            await a.connect(Address(b.host, port), TIMEOUT)
        with pytest.raises(Unreachable):
            await a.listen(port, echo)
        with pytest.raises(Unreachable):
            await a.datagrams(port, lambda data, sender: None)

    world.run(scenario)


def test_a_port_can_be_taken_once(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        listener = await a.listen(0, echo)
        with pytest.raises(Unreachable):
            await a.listen(listener.address.port, echo)
        listener.close()
        again = await a.listen(listener.address.port, echo)
        again.close()

    world.run(scenario)


def test_connecting_gives_up_in_time(world: World) -> None:
    nowhere = world.black_hole()

    async def scenario(a: Port, b: Port) -> None:
        started = a.now_ns()
        with pytest.raises(TimedOut):
            await a.connect(nowhere, 0.3)
        assert 0.29e9 < a.now_ns() - started < 2e9

    world.run(scenario)


def test_connecting_can_be_cancelled(world: World) -> None:
    nowhere = world.black_hole()

    async def scenario(a: Port, b: Port) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await a.connect(nowhere, TIMEOUT)

    world.run(scenario)


def test_a_close_delivers_what_was_written(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            await near.write(b"x" * 50_000)
            near.close()
            near.close()
            assert await far.read_exactly(50_000) == b"x" * 50_000
            with pytest.raises(EndOfStream):
                await far.read_exactly(1)
            with pytest.raises(ConnectionLost):
                await near.write(b"after")
            with pytest.raises(ConnectionLost):
                await near.read_exactly(1)

    world.run(scenario)


def test_a_close_delivers_even_if_the_peer_still_talks(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            await far.write(b"never read" * 1000)
            await a.sleep(0.1)
            await near.write(b"last words")
            near.close()
            assert await far.read_exactly(10) == b"last words"
            with pytest.raises(EndOfStream):
                await far.read_exactly(1)

    world.run(scenario)


def test_an_end_in_the_middle_of_a_read(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            await near.write(b"ab")
            near.close()
            with pytest.raises(EndOfStream):
                await far.read_exactly(3)

    world.run(scenario)


def test_an_abort_is_not_an_end(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            reading = asyncio.create_task(far.read_exactly(1))
            await a.sleep(0.05)
            near.abort()
            near.abort()
            with pytest.raises(ConnectionLost) as caught:
                await reading
            assert not isinstance(caught.value, EndOfStream)
            with pytest.raises(ConnectionLost):
                await far.write(b"x")
            with pytest.raises(ConnectionLost):
                await near.read_exactly(1)

    world.run(scenario)


def test_who_waits_on_a_stream_learns_of_its_local_end(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, _):
            reading = asyncio.create_task(near.read_exactly(1))
            await a.sleep(0.01)
            near.close()
            with pytest.raises(ConnectionLost):
                await reading

        async with both_ends(a, b) as (near, _):
            writing = asyncio.create_task(near.write(b"x" * 20_000_000))
            await a.sleep(0.01)
            near.abort()
            with pytest.raises(ConnectionLost):
                await writing

    world.run(scenario)


def test_writing_to_a_peer_that_closed_fails_in_the_end(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            far.close()
            with pytest.raises(ConnectionLost):
                while True:
                    await near.write(b"x" * 1000)
                    await a.sleep(0.05)

    world.run(scenario)


def test_a_cancelled_read_loses_no_bytes(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            await near.write(b"ab")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await far.read_exactly(4)
            await near.write(b"cd")
            assert await far.read_exactly(4) == b"abcd"

    world.run(scenario)


def test_a_cancelled_write_leaves_the_stream_usable(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        async with both_ends(a, b) as (near, far):
            size = 20_000_000
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await near.write(b"x" * size)
            reading = asyncio.create_task(far.read_exactly(size + 3))
            await near.write(b"end")
            assert (await reading)[-4:] == b"xend"

    world.run(scenario)


def test_closing_a_listener_ends_its_handlers(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        ended: list[str] = []

        async def hold(stream: Stream) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        listener = await b.listen(0, hold)
        stream = await a.connect(listener.address, TIMEOUT)
        await a.sleep(0.05)
        listener.close()
        with pytest.raises(ConnectionLost):
            await stream.read_exactly(1)
        assert ended == ["cancelled"]

    world.run(scenario)


def test_a_stream_ends_with_its_handler(world: World) -> None:
    async def greet(stream: Stream) -> None:
        await stream.write(b"hi")

    async def stumble(stream: Stream) -> None:
        raise ConnectionLost("of another stream")

    async def scenario(a: Port, b: Port) -> None:
        listener = await b.listen(0, greet)
        stream = await a.connect(listener.address, TIMEOUT)
        assert await stream.read_exactly(2) == b"hi"
        with pytest.raises(EndOfStream):
            await stream.read_exactly(1)
        stream.close()
        listener.close()

        listener = await b.listen(0, stumble)
        stream = await a.connect(listener.address, TIMEOUT)
        with pytest.raises(ConnectionLost) as caught:
            await stream.read_exactly(1)
        assert not isinstance(caught.value, EndOfStream)
        listener.close()

    world.run(scenario)


def test_datagrams_go_and_are_answered(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        heard: asyncio.Queue[tuple[bytes, Address]] = asyncio.Queue()
        there = await b.datagrams(0, lambda data, sender: there.send(data.upper(), sender))
        here = await a.datagrams(0, lambda data, sender: heard.put_nowait((data, sender)))
        here.send(b"ping", there.address)
        assert await heard.get() == (b"PING", there.address)
        here.send(b"nobody is there", Address(b.host, 9))
        here.send(b"x" * 100_000, there.address)
        here.send(b"still alive", there.address)
        assert (await heard.get())[0] == b"STILL ALIVE"
        here.close()
        here.close()
        here.send(b"too late", there.address)
        there.close()

    world.run(scenario)


def test_time_passes_while_sleeping(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        started = a.now_ns()
        await a.sleep(0.02)
        assert a.now_ns() - started >= 19_000_000

    world.run(scenario)


def test_work_gives_its_result_and_does_not_stop_the_loop(world: World) -> None:
    async def scenario(a: Port, b: Port) -> None:
        assert await a.work(lambda: 6 * 7, 0.01) == 42
        with pytest.raises(ZeroDivisionError):
            await a.work(lambda: 1 / 0, 0.01)
        one, other = await asyncio.gather(a.work(lambda: 1, 0.01), b.work(lambda: 2, 0.01))
        assert (one, other) == (1, 2)

    world.run(scenario)


def test_work_takes_modelled_time_in_virtual_time_whether_it_succeeds_or_not() -> None:
    world = VirtualWorld()

    async def scenario(a: Port, b: Port) -> None:
        await a.work(lambda: None, 2.0)
        with pytest.raises(ZeroDivisionError):
            await a.work(lambda: 1 / 0, 1.5)
        assert a.now_ns() == 3_500_000_000

    world.run(scenario)
    world.close()


def test_work_in_real_time_leaves_the_loop_to_others() -> None:
    async def scenario(a: Port, b: Port) -> None:
        done = threading.Event()
        waiting = asyncio.create_task(a.work(lambda: done.wait(20), 0.0))
        await a.sleep(0.01)
        done.set()  # would never be reached if the loop itself were waiting
        assert await waiting

    OsWorld().run(scenario)


@pytest.mark.parametrize("make", [OsWorld, uvloop_world], ids=["os", "uvloop"])
def test_who_is_done_does_not_wait_for_work_that_nobody_wants_any_more(make: Callable[[], World]) -> None:
    never = threading.Event()

    async def scenario(a: Port, b: Port) -> None:
        waiting = asyncio.create_task(a.work(never.wait, 0.0))
        await a.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    try:
        make().run(scenario)
    finally:
        never.set()
