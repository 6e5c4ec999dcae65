"""Runs networks of our OLSR daemons in virtual time, on any medium, with or without mobility."""

import random
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.olsr.tables import Tables
from node_agent.host.virtual_routes import VirtualRoutes
from node_agent.olsr.broadcast import PortBroadcast
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface
from node_agent.olsr.service import OlsrService
from node_agent.olsr.wire import dotted, number
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.model.trace import Position, Trace
from orchestrator.radio.dcf_medium import DcfMedium
from orchestrator.radio.medium import Medium
from orchestrator.radio.settings import Mac, Radio
from orchestrator.services.virtual import RadioOf, VirtualLinkLayer, hardware_address

TICK_NS = 100_000_000
FIRST_ADDRESS = number("10.0.0.1")


class VirtualNetwork:
    """``hosts`` and ``services`` by the node's name; addresses are 10.0.0.1 and so on in the names' order."""

    def __init__(
        self,
        nodes: Sequence[str],
        medium: Callable[[VirtualLoop], Medium],
        config: OlsrConfig,
        seed: int,
        draws: Callable[[str], random.Random] | None = None,
    ) -> None:
        """``draws``: the random stream of a node's daemon, if not that of its port."""
        self.loop = VirtualLoop()
        self.started_s = 0.0
        self.address = {node: dotted(FIRST_ADDRESS + index) for index, node in enumerate(nodes)}
        node_at = {address: node for node, address in self.address.items()}
        air = medium(self.loop)
        self.hosts: dict[str, VirtualHost] = {}
        self.services: dict[str, OlsrService] = {}
        self._routes: dict[str, VirtualRoutes] = {}
        for node, address in self.address.items():
            routes = self._routes[node] = VirtualRoutes(node_at)
            host = self.hosts[node] = VirtualHost(node, address, self.loop, air, routes)
            port = VirtualPort(host, seed)
            self.services[node] = OlsrService(
                config,
                [Interface("wlan0", number(address), hardware=hardware_address(address))],
                PortBroadcast(port),
                routes,
                port.now_ns,
                port.random if draws is None else draws(node),
                link_layer=_link_layer(air, node, node_at),
            )
        self.loop.run_until_complete(self._start())

    def now_s(self) -> float:
        return self.loop.now_ns() / NS

    def run_until(self, seconds: float) -> None:
        self.loop.run_until_ns(round(seconds * NS))

    def tables(self) -> Tables:
        return {
            node: {
                other: next_hop for other, at in self.address.items() if (next_hop := routes(at)) is not None
            }
            for node, routes in self._routes.items()
        }

    def cpu_seconds(self) -> float:
        return time.process_time()

    def silence(self, node: str) -> None:
        self.hosts[node].close()

    async def _start(self) -> None:
        for service in self.services.values():
            await service.start()

    async def _stop(self) -> None:
        for service in self.services.values():
            await service.stop()

    def close(self) -> None:
        self.loop.run_until_complete(self._stop())
        for host in self.hosts.values():
            host.close()
        self.loop.close()


def _link_layer(air: Medium, node: str, node_at: Mapping[str, str]) -> VirtualLinkLayer | None:
    if not isinstance(air, DcfMedium):
        return None
    return VirtualLinkLayer(RadioOf(air.station_table(node), air.sensitivity_dbm), node_at)


class Roaming:
    """The 802.11b channel along a trace. Call it to get the medium of a network.

    ``still_s``: how long nodes stand still before they begin to move.
    """

    medium: DcfMedium

    def __init__(self, trace: Trace, radio: Radio, mac: Mac, seed: int, still_s: float = 0.0) -> None:
        self._trace, self._radio, self._mac, self._seed = trace, radio, mac, seed
        self._still_ns = round(still_s * NS)

    def __call__(self, loop: VirtualLoop) -> DcfMedium:
        places = self._trace.at(0.0)
        self.medium = DcfMedium(loop, list(places), list(places.values()), self._radio, self._mac, self._seed)
        loop.call_at_ns(TICK_NS, self._tick, loop, places)
        return self.medium

    def _tick(self, loop: VirtualLoop, before: dict[str, Position]) -> None:
        now = loop.now_ns()
        places = self._trace.at(max(now - self._still_ns, 0) / NS)
        if places != before:
            self.medium.move(list(places.values()))
        loop.call_at_ns(now + TICK_NS, self._tick, loop, places)
