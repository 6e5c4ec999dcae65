"""Our own AODV daemon; packets without a route wait in a TUN device while it looks for one."""

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

from node_agent import aodv
from node_agent.aodv import process
from node_agent.aodv import service as on_virtual_hosts
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.process import ProcessConfig
from node_agent.aodv.reader import INFO_PORT, AodvReader
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.overhead import OverheadConfig
from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.truth import Links
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import Module
from orchestrator.services.sections import HELLOS_MISSED, MetricOf, Ours
from orchestrator.services.virtual import Counted, Group, Joined, VirtualNetwork
from orchestrator.spec.backends import BACKENDS, Traits
from orchestrator.spec.problems import Finding, listed
from orchestrator.spec.routing import Interval

_CONFIG = "aodv.json"
_READER = "aodv"


Detection = Literal["hello", "feedback"]


class Aodv(Ours):
    """Our own AODV (RFC 3561): it finds routes on demand, so there is no quorum to wait for."""

    protocol: Literal["aodv"]
    metric: Annotated[str, MetricOf(_READER)] = "hops"
    hello: Interval = 1.0
    active_route: Interval = Field(default=3.0, description="How long an unused route is good for")
    detection: Detection | None = Field(
        default=None,
        description="A broken link shows by missing HELLOs, or (only in virtual time) the link layer tells; "
        "if not given, feedback where it is to be had, else hello",
    )

    def detected_by(self, link_feedback: bool) -> Detection:
        """Returns how lost links are detected: virtual time's medium reports frames it gave up, a kernel does
        not."""
        return self.detection or ("feedback" if link_feedback else "hello")

    def notices_after(self, link_feedback: bool) -> float:
        return 0.0 if self.detected_by(link_feedback) == "feedback" else HELLOS_MISSED * self.hello

    def settles_after(self) -> float:
        return self.hello


def aodv_config(routing: Aodv, link_feedback: bool) -> AodvConfig:
    return AodvConfig(
        detection=routing.detected_by(link_feedback),
        hello_interval=routing.hello,
        active_route_timeout=routing.active_route,
    )


class AodvService(RoutingService):
    protocol = "aodv"
    section = Aodv
    route_protocol = 84
    sets_kernel_routes = True
    modules: ClassVar = (process.__name__,)

    def __init__(self, routing: Aodv) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig(_READER, metric=self._routing.metric)

    def overhead(self) -> OverheadConfig:
        return OverheadConfig(self.protocol, "127.0.0.1", INFO_PORT)

    def files(self, place: Place) -> Mapping[str, str]:
        config = ProcessConfig(
            interface=place.interface,
            aodv=aodv_config(self._routing, link_feedback=False),
            manet=place.manet(self._routing.authentication),
            seed=place.seed,
        )
        return {_CONFIG: msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"}

    def program(self, place: Place) -> Module:
        return Module(aodv.__name__, str(place.directory / _CONFIG))

    def findings(self, traits: Traits) -> list[Finding]:
        if self._routing.detection != "feedback" or traits.link_feedback:
            return []
        text = "a kernel does not tell which packets its link layer gave up"
        telling = [name for name in BACKENDS if BACKENDS[name].traits.link_feedback]
        return [Finding(("detection",), text, f"use detection: hello, or backend: {listed(telling)}")]

    def once_up(self) -> str:
        return "aodv seeks a route when the first packet needs it"

    def in_virtual_time(self, network: VirtualNetwork) -> "AodvRouting":
        return AodvRouting(self._routing, network)


class AodvRouting:
    """The daemon's core on every virtual host."""

    def __init__(self, routing: Aodv, network: VirtualNetwork) -> None:
        self._config = aodv_config(routing, link_feedback=True)
        self._group = Group(network, routing.authentication)
        self._metric = routing.metric
        self._node_at = network.node_at
        self._seed = network.seed

    def next_hop(self, node: str) -> NextHop:
        """Yields no next hop: the daemon forwards whole packets itself; without it nothing is forwarded."""
        return lambda destination: None

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        rng = random.Random(f"aodv/{self._seed}/{host.node}")
        seal = self._group.seal("aodv", port.now_ns)
        service = on_virtual_hosts.AodvService(
            host, self._config, self._node_at, rng, self._group.manet, seal
        )
        reader = AodvReader(service, wanted)
        link_state = MeasuredLinkState(reader, self._node_at, port.now_ns, self._metric)
        counters = service.counters
        return Joined(link_state, Counted("aodv", counters.kinds, counters.refusals), service)

    def update(self, links: Links) -> None:
        """Does nothing: the daemon notices by itself what no longer arrives."""
