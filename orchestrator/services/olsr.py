"""Our own OLSR daemon, which speaks olsrd's dialect and answers like it."""

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

from node_agent import olsr
from node_agent.host.virtual_routes import VirtualRoutes
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.overhead import OverheadConfig
from node_agent.olsr import process
from node_agent.olsr import service as on_virtual_hosts
from node_agent.olsr.broadcast import PortBroadcast
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface
from node_agent.olsr.process import ProcessConfig
from node_agent.olsr.reader import OlsrCoreReader
from node_agent.olsr.wire import number
from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.truth import Links
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import Module
from orchestrator.services.sections import OLSRD_READER, OlsrLike, Ours
from orchestrator.services.virtual import INTERFACE, Counted, Group, Joined, VirtualNetwork, hardware_address

JSONINFO_PORT = 9090
_CONFIG = "olsr.json"


class Olsr(OlsrLike, Ours):
    """Our own daemon (``python -m node_agent.olsr``)."""

    protocol: Literal["olsr"] = "olsr"
    fisheye: bool = Field(
        default=True, strict=True, description="Distant nodes hear only every eighth TC, and news at once"
    )
    mpr_coverage: Annotated[int, Field(strict=True, ge=1, le=7)] = Field(
        default=7, description="Neighbours that shall relay to each node two hops away; RFC 3626's is 1"
    )
    tc_redundancy: Annotated[int, Field(strict=True, ge=0, le=2)] = Field(
        default=2,
        description="Neighbours in a TC: 0 who chose this node as relay (RFC 3626), 1 its relays too, 2 all",
    )

    def notices_after(self, link_feedback: bool) -> float:
        return self.hello if self.quality == "fast" and link_feedback else self.hello_validity


def olsr_config(routing: Olsr) -> OlsrConfig:
    return OlsrConfig(
        hello_interval=routing.hello,
        hello_validity=routing.hello_validity,
        tc_interval=routing.tc,
        tc_validity=routing.tc_validity,
        mid_interval=routing.tc,
        mid_validity=routing.tc_validity,
        hna_interval=routing.tc,
        hna_validity=routing.tc_validity,
        quality=routing.link_quality,
        fisheye=routing.fisheye,
        mpr_coverage=routing.mpr_coverage,
        tc_redundancy=routing.tc_redundancy,
        longest_validity=2 * max(routing.hello_validity, routing.tc_validity),
    )


class OlsrService(RoutingService):
    protocol = "olsr"
    section = Olsr
    route_protocol = 83
    sets_kernel_routes = True
    modules: ClassVar = (process.__name__, "node_agent.host.kernel_routes")

    def __init__(self, routing: Olsr) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig(OLSRD_READER, metric=self._routing.metric)

    def overhead(self) -> OverheadConfig:
        return OverheadConfig(self.protocol, "127.0.0.1", JSONINFO_PORT)

    def asks_radio(self) -> bool:
        return self._routing.link_quality == "fast"

    def files(self, place: Place) -> Mapping[str, str]:
        config = ProcessConfig(
            interfaces=(place.interface,),
            olsr=olsr_config(self._routing),
            manet=place.manet(self._routing.authentication),
            jsoninfo_port=JSONINFO_PORT,
            seed=place.seed,
            stations=str(place.stations or ""),
        )
        return {_CONFIG: msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"}

    def program(self, place: Place) -> Module:
        return Module(olsr.__name__, str(place.directory / _CONFIG))

    def in_virtual_time(self, network: VirtualNetwork) -> "OlsrRouting":
        return OlsrRouting(self._routing, network)


class OlsrRouting:
    """The daemon's core on every virtual host."""

    def __init__(self, routing: Olsr, network: VirtualNetwork) -> None:
        self._config = olsr_config(routing)
        self._group = Group(network, routing.authentication)
        self._metric = routing.metric
        self._network = network
        self._node_at = network.node_at
        self._seed = network.seed
        self._tables: dict[str, VirtualRoutes] = {}

    def next_hop(self, node: str) -> NextHop:
        table = self._tables[node] = VirtualRoutes(self._node_at)
        return table

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        service = on_virtual_hosts.OlsrService(
            self._config,
            [Interface(INTERFACE, number(port.host), hardware=hardware_address(port.host))],
            PortBroadcast(port),
            self._tables[host.node],
            port.now_ns,
            random.Random(f"olsr/{self._seed}/{host.node}"),
            self._group.manet,
            self._group.seal("olsr", port.now_ns),
            self._network.link_layer(host.node),
        )
        counters = service.daemon.counters
        reader = OlsrCoreReader(service.daemon.costs, port.now_ns, self._config.quality)
        link_state = MeasuredLinkState(reader, self._node_at, port.now_ns, self._metric)
        return Joined(link_state, Counted("olsr", counters.kinds, counters.refusals), service)

    def update(self, links: Links) -> None:
        """Does nothing: the daemon's HELLOs detect changed links."""
