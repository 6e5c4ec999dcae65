"""AODV on virtual hosts: streams and datagrams wait for their route, and follow nodes that move."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

import pytest

from node_agent.aodv.config import AodvConfig
from node_agent.aodv.reader import AodvReader
from node_agent.aodv.service import AodvService
from node_agent.linkstate.reader import Edge
from node_agent.manet.seal import Seal
from node_agent.ports import Address, Stream, TimedOut
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.disc import DiscRadio

LINE = {"a": (0.0, 0.0), "b": (90.0, 0.0), "c": (180.0, 0.0), "d": (270.0, 0.0)}
DETOUR = {**LINE, "e": (180.0, 40.0)}


class AodvWorld:
    def __init__(
        self,
        positions: Mapping[str, tuple[float, float]],
        config: AodvConfig | None = None,
        key: bytes = b"",
        other_key: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.loop = VirtualLoop()
        self.radio = DiscRadio(self.loop, 100.0, 11_000_000, 100_000)
        self.positions = dict(positions)
        self.addresses = {node: f"10.0.0.{number}" for number, node in enumerate(positions, start=1)}
        node_at = {address: node for node, address in self.addresses.items()}
        self.ports: dict[str, VirtualPort] = {}
        self.hosts: dict[str, VirtualHost] = {}
        self.services: dict[str, AodvService] = {}
        for node, address in self.addresses.items():
            host = VirtualHost(node, address, self.loop, self.radio, lambda destination: None)
            rng = random.Random(f"1/{node}")
            self.hosts[node] = host
            self.ports[node] = VirtualPort(host, 1)
            seal = Seal(other_key.get(node, key), "aodv", self.loop.now_ns) if key else None
            self.services[node] = AodvService(host, config or AodvConfig(), node_at, rng, seal=seal)
        self.radio.move(self.positions)

    def move(self, node: str, x: float, y: float) -> None:
        self.positions[node] = (x, y)
        self.radio.move(self.positions)

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            for service in self.services.values():
                await service.start()
            await scenario()
            for service in self.services.values():
                await service.stop()
                await service.stop()

        self.loop.run_until_complete(main())
        for host in self.hosts.values():
            host.close()
        self.loop.run_until_ns(self.loop.now_ns() + NS)
        self.loop.close()


def both(test: Callable[[AodvConfig], None]) -> Callable[[AodvConfig], None]:
    configs = [AodvConfig(), AodvConfig(detection="hello")]
    decorated: Callable[[AodvConfig], None] = pytest.mark.parametrize(
        "config", configs, ids=["feedback", "hello"]
    )(test)
    return decorated


@both
def test_a_stream_opens_over_three_hops_and_survives_a_moved_node(config: AodvConfig) -> None:
    world = AodvWorld(DETOUR, config)
    received: list[bytes] = []

    async def scenario() -> None:
        async def take(stream: Stream) -> None:
            while True:
                received.append(await stream.read_exactly(1000))

        listener = await world.ports["d"].listen(7, take)
        stream = await world.ports["a"].connect(listener.address, 5)
        assert world.loop.now_ns() < 2 * NS
        for count in range(200):
            await stream.write(bytes(1000))
            await asyncio.sleep(0.1)
            if count == 50:
                world.move("c", 180.0, 2000.0)
            if count == 120:
                world.move("c", 180.0, 0.0)
                world.move("e", 180.0, 2000.0)
        await asyncio.sleep(5)
        assert len(received) == 200
        stream.close()
        listener.close()

    world.run(scenario)
    errors = sum(service.counters.kinds["RERR"].sent for service in world.services.values())
    assert errors >= 1


@both
def test_the_first_datagram_is_not_lost(config: AodvConfig) -> None:
    world = AodvWorld(LINE, config)
    heard: list[bytes] = []

    async def scenario() -> None:
        await world.ports["d"].datagrams(7, lambda data, sender: heard.append(data))
        socket = await world.ports["a"].datagrams(0, lambda data, sender: None)
        for number in range(50):
            socket.send(bytes([number]), Address(world.addresses["d"], 7))
            await asyncio.sleep(0.5)

    world.run(scenario)
    assert heard == [bytes([number]) for number in range(50)]
    # One-way traffic keeps the whole route alive: nobody had to ask twice.
    asked = sum(service.counters.kinds["RREQ"].sent for service in world.services.values())
    assert asked <= 3


def test_nowhere_is_given_up_in_bounded_time() -> None:
    world = AodvWorld({**LINE, "z": (9000.0, 0.0)})

    async def scenario() -> None:
        with pytest.raises(TimedOut):
            await world.ports["a"].connect(Address(world.addresses["z"], 7), 3)
        socket = await world.ports["a"].datagrams(0, lambda data, sender: None)
        socket.send(b"x", Address("192.0.2.1", 7))
        assert world.hosts["a"].counters.no_route == 1
        await asyncio.sleep(30)
        assert world.services["a"].core.held == 0

    world.run(scenario)
    counters = world.services["a"].counters
    assert counters.kinds["RREQ"].sent == 7
    assert counters.drops["no_route"] >= 1


def test_hops_of_known_routes_are_the_costs() -> None:
    world = AodvWorld(LINE)
    a = world.services["a"]

    async def scenario() -> None:
        reader = AodvReader(a, [world.addresses[node] for node in ("b", "d")])
        assert (await reader.read()).edges == {"10.0.0.1": {}}
        await asyncio.sleep(1)
        reading = await reader.read()
        assert reading.own_only and reading.metric == "hops" and reading.source == "aodv"
        row = reading.edges["10.0.0.1"]
        assert row["10.0.0.2"] == Edge(1.0) and row["10.0.0.4"] == Edge(3.0, hops=3)
        # Asked again and again, the costs stay known as long as the routes work.
        for _ in range(20):
            await asyncio.sleep(1)
            assert "10.0.0.4" in (await reader.read()).edges["10.0.0.1"]
        world.move("d", 9000.0, 0.0)
        await asyncio.sleep(10)
        assert "10.0.0.4" not in (await reader.read()).edges["10.0.0.1"]

    world.run(scenario)


def test_the_same_seed_gives_the_same_run() -> None:
    def once() -> tuple[int, list[dict[str, dict[str, int]]]]:
        world = AodvWorld(DETOUR, AodvConfig(detection="hello"))

        async def scenario() -> None:
            async def take(stream: Stream) -> None:
                await stream.read_exactly(100_000)

            listener = await world.ports["d"].listen(7, take)
            stream = await world.ports["a"].connect(listener.address, 5)
            await stream.write(bytes(50_000))
            world.move("c", 180.0, 2000.0)
            await stream.write(bytes(50_000))
            await asyncio.sleep(5)
            listener.close()

        world.run(scenario)
        return world.loop.now_ns(), [each.counters.by_kind() for each in world.services.values()]

    assert once() == once()
