"""OLSR services on virtual hosts: what the core decides becomes the way that streams take."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from node_agent.host.virtual_routes import VirtualRoutes
from node_agent.manet.seal import Seal
from node_agent.olsr.broadcast import PortBroadcast
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface
from node_agent.olsr.service import GOODBYE_SPACING_S, GOODBYES, OlsrService
from node_agent.olsr.wire import number
from node_agent.ports import Address, Stream, Unreachable
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.disc import DiscRadio

FAST = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, tc_validity=15.0)
CONVERGED_S = 40.0
LINE = ((0.0, 0.0), (80.0, 0.0), (160.0, 0.0))


class Line:
    """Nodes n1, n2, … at 10.0.0.1, 10.0.0.2, …, with a range of 100 m. With a ``key`` they seal packets."""

    def __init__(
        self,
        positions: Sequence[tuple[float, float]] = LINE,
        config: OlsrConfig = FAST,
        seed: int = 1,
        key: bytes = b"",
        other_key: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.loop = VirtualLoop()
        self.radio = DiscRadio(self.loop, 100.0, 11_000_000, 100_000)
        self.nodes = [f"n{index}" for index in range(1, len(positions) + 1)]
        self.address = {node: f"10.0.0.{node[1:]}" for node in self.nodes}
        node_at = {address: node for node, address in self.address.items()}
        self.tables = {node: VirtualRoutes(node_at) for node in self.nodes}
        self.hosts: dict[str, VirtualHost] = {}
        self.ports: dict[str, VirtualPort] = {}
        self.services: dict[str, OlsrService] = {}
        for node, address in self.address.items():
            host = VirtualHost(node, address, self.loop, self.radio, self.tables[node])
            port = VirtualPort(host, seed)
            interface = Interface("wlan0", number(address))
            self.hosts[node], self.ports[node] = host, port
            self.services[node] = OlsrService(
                config,
                [interface],
                PortBroadcast(port),
                self.tables[node],
                port.now_ns,
                random.Random(f"{seed}/{node}"),
                seal=Seal(other_key.get(node, key), "olsr", port.now_ns) if key else None,
            )
        self.radio.move(dict(zip(self.nodes, positions, strict=True)))
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        for service in self.services.values():
            await service.start()

    def until(self, seconds: float) -> None:
        self.loop.run_until_ns(round(seconds * NS))

    def next_hops(self, node: str) -> dict[str, str | None]:
        return {other: self.tables[node](self.address[other]) for other in self.nodes if other != node}


def test_routes_appear_on_all_hosts() -> None:
    line = Line()
    assert line.next_hops("n1") == {"n2": None, "n3": None}
    line.until(CONVERGED_S)
    assert line.next_hops("n1") == {"n2": "n2", "n3": "n2"}
    assert line.next_hops("n2") == {"n1": "n1", "n3": "n3"}
    assert line.next_hops("n3") == {"n1": "n2", "n2": "n2"}


def test_a_stream_flows_over_two_hops() -> None:
    line = Line()
    line.until(CONVERGED_S)
    heard: list[bytes] = []

    async def listen(stream: Stream) -> None:
        heard.append(await stream.read_exactly(5))

    async def scenario() -> None:
        await line.ports["n3"].listen(7, listen)
        stream = await line.ports["n1"].connect(Address("10.0.0.3", 7), timeout=5)
        await stream.write(b"hello")
        await asyncio.sleep(1)

    line.loop.run_until_complete(scenario())
    assert heard == [b"hello"]
    assert line.hosts["n2"].counters.forwarded > 0


def test_routes_over_a_dead_node_are_gone_within_the_validity() -> None:
    line = Line()
    line.until(CONVERGED_S)
    line.hosts["n2"].close()
    line.until(CONVERGED_S + FAST.hello_validity + 0.5)
    assert line.next_hops("n1") == {"n2": None, "n3": None}

    async def scenario() -> None:
        with pytest.raises(Unreachable):
            await line.ports["n1"].connect(Address("10.0.0.3", 7), timeout=5)

    line.loop.run_until_complete(scenario())


def test_a_node_that_moved_is_reached_another_way() -> None:
    line = Line()
    line.until(CONVERGED_S)
    line.radio.move({"n1": (0.0, 0.0), "n2": (80.0, 0.0), "n3": (0.0, 80.0)})
    line.until(2 * CONVERGED_S)
    assert line.next_hops("n3") == {"n1": "n1", "n2": "n1"}
    assert line.next_hops("n2") == {"n1": "n1", "n3": "n1"}


def test_a_stopped_service_is_silent_and_takes_its_routes_back() -> None:
    line = Line()
    line.until(CONVERGED_S)
    sent = line.hosts["n1"].counters.sent

    async def stop() -> None:
        await line.services["n1"].stop()
        await line.services["n1"].stop()

    line.loop.run_until_complete(stop())
    assert line.next_hops("n1") == {"n2": None, "n3": None}
    line.until(CONVERGED_S + 10)
    assert line.hosts["n1"].counters.sent == sent
    assert line.next_hops("n1") == {"n2": None, "n3": None}


@pytest.mark.parametrize("key", [b"", bytes(32)])
def test_one_that_leaves_is_forgotten_at_once(key: bytes) -> None:
    line = Line(key=key)
    line.until(CONVERGED_S)
    left: list[int] = []

    async def leave() -> None:
        await line.services["n3"].say_goodbye()
        left.append(line.loop.now_ns())

    line.loop.create_task(leave())
    line.until(CONVERGED_S + 1)
    assert left == [round((CONVERGED_S + (GOODBYES - 1) * GOODBYE_SPACING_S) * NS)]
    assert line.next_hops("n1") == {"n2": "n2", "n3": None}
    assert line.next_hops("n2") == {"n1": "n1", "n3": None}
    assert line.next_hops("n3") == {"n1": "n2", "n2": "n2"}  # for what is still under way

    async def stop() -> None:
        await line.services["n3"].say_goodbye()  # nothing is said twice
        await line.services["n3"].stop()

    sent = line.hosts["n3"].counters.sent
    line.loop.run_until_complete(stop())
    line.until(CONVERGED_S + 10)
    assert line.next_hops("n3") == {"n1": None, "n2": None}
    assert line.hosts["n3"].counters.sent == sent


def test_one_that_cannot_have_the_port_starts_nothing() -> None:
    line = Line()
    interface = Interface("wlan0", number("10.0.0.1"))
    port = line.ports["n1"]
    second = OlsrService(
        FAST, [interface], PortBroadcast(port), line.tables["n1"], port.now_ns, random.Random(1)
    )

    async def start() -> None:
        with pytest.raises(Unreachable, match="port 698"):
            await second.start()

    line.loop.run_until_complete(start())
    line.until(CONVERGED_S)
    assert line.next_hops("n1") == {"n2": "n2", "n3": "n2"}


def test_the_same_seed_gives_the_same_run() -> None:
    def traffic(seed: int) -> list[dict[str, dict[str, int]]]:
        line = Line(seed=seed)
        line.until(20)
        return [service.daemon.counters.as_dict() for service in line.services.values()]

    assert traffic(1) == traffic(1)
    assert traffic(1) != traffic(2)
