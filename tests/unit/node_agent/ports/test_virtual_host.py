"""The virtual network stack: hop by hop, with counters for what goes astray."""

import asyncio
from collections.abc import Callable

import pytest

from node_agent.ports import Address, ConnectionLost, Port, Stream, Unreachable
from node_agent.ports.virtual.host import BROADCAST_HOST, TTL
from node_agent.ports.virtual.loop import NS, UnhandledErrors
from node_agent.ports.virtual.segment import StreamConfig
from tests.unit.worlds import VirtualWorld

LINE = {"a": (0.0, 0.0), "b": (90.0, 0.0), "c": (180.0, 0.0), "d": (270.0, 0.0)}


def line(streams: StreamConfig | None = None) -> VirtualWorld:
    world = VirtualWorld(LINE, streams=streams)
    world.chain(*LINE)
    return world


async def send_bytes(world: VirtualWorld, source: str, destination: str, payload: bytes) -> bytes:
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def take(stream: Stream) -> None:
        arrived.set_result(await stream.read_exactly(len(payload)))

    listener = await world.ports[destination].listen(0, take)
    stream = await world.ports[source].connect(listener.address, 5)
    await stream.write(payload)
    received = await arrived
    stream.close()
    listener.close()
    return received


def test_streams_go_over_several_hops() -> None:
    world = line()
    payload = bytes(range(256)) * 400
    assert world.loop.run_until_complete(send_bytes(world, "a", "d", payload)) == payload
    world.loop.run_until_ns(world.loop.now_ns() + NS)  # the last acknowledgements
    assert world.hosts["b"].counters.forwarded > 70
    assert world.hosts["b"].counters.forwarded == world.hosts["c"].counters.forwarded
    world.close()


def throughput_bps(world: VirtualWorld, destination: str) -> float:
    size = 2_000_000
    started = world.loop.now_ns()
    world.loop.run_until_complete(send_bytes(world, "a", destination, bytes(size)))
    world.close()
    return size * 8 * NS / (world.loop.now_ns() - started)


def test_streams_fill_the_channel_and_share_it_between_hops() -> None:
    one_hop, two_hops = throughput_bps(line(), "b"), throughput_bps(line(), "c")
    assert 0.9 * 11e6 < one_hop < 11e6
    assert two_hops == pytest.approx(one_hop / 2, rel=0.1)


def test_a_broadcast_reaches_direct_neighbours_only() -> None:
    world = line()
    heard: list[tuple[str, bytes, Address]] = []

    def note(node: str) -> Callable[[bytes, Address], None]:
        return lambda data, sender: heard.append((node, data, sender))

    async def main() -> None:
        sockets = {node: await port.datagrams(698, note(node)) for node, port in world.ports.items()}
        sockets["b"].send(b"hello", Address(BROADCAST_HOST, 698))
        await asyncio.sleep(1)

    world.loop.run_until_complete(main())
    assert heard == [("a", b"hello", Address("b", 698)), ("c", b"hello", Address("b", 698))]
    world.close()


def datagram_from_a_to(world: VirtualWorld, destination: str) -> bool:
    heard: list[bytes] = []

    async def main() -> None:
        if destination in world.ports:
            await world.ports[destination].datagrams(7, lambda data, sender: heard.append(data))
        socket = await world.ports["a"].datagrams(0, lambda data, sender: None)
        socket.send(b"x", Address(destination, 7))
        await asyncio.sleep(1)

    world.loop.run_until_complete(main())
    world.close()
    return heard == [b"x"]


def test_packets_without_a_route_are_counted_where_they_end() -> None:
    world = VirtualWorld(LINE)
    world.routes["a", "d"] = "b"
    assert not datagram_from_a_to(world, "d")
    assert world.hosts["b"].counters.no_route == 1
    assert world.hosts["b"].counters.forwarded == 0


def test_packets_that_go_in_circles_expire() -> None:
    world = VirtualWorld(LINE)
    world.routes.update({("a", "d"): "b", ("b", "d"): "a"})
    assert not datagram_from_a_to(world, "d")
    a, b = world.hosts["a"].counters, world.hosts["b"].counters
    assert a.ttl_expired + b.ttl_expired == 1
    assert a.forwarded + b.forwarded == TTL - 1


def test_a_route_over_a_link_that_is_gone_loses_packets() -> None:
    world = VirtualWorld(LINE)
    world.routes["a", "d"] = "d"
    assert not datagram_from_a_to(world, "d")
    assert world.hosts["a"].counters.lost == 1


def test_connecting_without_a_route_fails_at_once() -> None:
    world = VirtualWorld(LINE)

    async def scenario(a: Port, b: Port) -> None:
        with pytest.raises(Unreachable, match="no route"):
            await a.connect(Address("d", 7), 5)
        assert a.now_ns() == 0

    world.run(scenario)
    world.close()


def test_a_stream_survives_a_short_gap_and_breaks_in_a_long_one() -> None:
    world = VirtualWorld(streams=StreamConfig(give_up_ns=3 * NS))

    async def main() -> None:
        received = 0

        async def count(stream: Stream) -> None:
            nonlocal received
            while True:
                received += len(await stream.read_exactly(1000))

        listener = await world.ports["b"].listen(0, count)
        stream = await world.ports["a"].connect(listener.address, 5)
        apart, together = {"a": (0.0, 0.0), "b": (500.0, 0.0)}, {"a": (0.0, 0.0), "b": (50.0, 0.0)}

        world.radio.move(apart)
        await stream.write(bytes(1000))
        await asyncio.sleep(1)
        assert received == 0
        world.radio.move(together)
        await asyncio.sleep(1)
        assert received == 1000

        world.radio.move(apart)
        await stream.write(bytes(1000))
        started = world.loop.now_ns()
        with pytest.raises(ConnectionLost, match="path is dead"):
            await stream.read_exactly(1)
        assert world.loop.now_ns() - started == 3 * NS
        listener.close()

    world.loop.run_until_complete(main())
    world.close()


def test_a_node_that_is_gone_says_nothing_more() -> None:
    world = VirtualWorld()
    a, b = world.hosts["a"], world.hosts["b"]
    ended: list[str] = []

    async def hold(stream: Stream) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("handler")

    async def up() -> Stream:
        await world.ports["b"].listen(7, hold)
        return await world.ports["a"].connect(Address("b", 7), 5)

    stream = world.loop.run_until_complete(up())
    world.loop.run_until_ns(NS)
    b.close()
    sent = b.counters.sent
    waiting = world.loop.create_task(stream.read_exactly(1))
    world.loop.run_until_ns(20 * NS)
    assert ended == ["handler"]
    assert b.counters.sent == sent
    assert a._streams == {} and b._streams == {}
    assert isinstance(waiting.exception(), ConnectionLost)
    world.close()


def test_an_error_in_a_handler_ends_the_run() -> None:
    world = VirtualWorld()

    async def broken(stream: Stream) -> None:
        raise KeyError("handler")

    async def scenario(a: Port, b: Port) -> None:
        listener = await b.listen(0, broken)
        await a.connect(listener.address, 5)
        await a.sleep(1)

    with pytest.raises(UnhandledErrors) as caught:
        world.run(scenario)
    assert caught.group_contains(KeyError)
    world.close()


def test_randomness_belongs_to_seed_and_node() -> None:
    def draw(seed: int, node: str) -> float:
        return VirtualWorld(LINE, seed).ports[node].random.random()

    assert draw(1, "a") == draw(1, "a")
    assert len({draw(1, "a"), draw(1, "b"), draw(2, "a")}) == 3
