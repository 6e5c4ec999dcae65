"""Who finds the ways in a simulation: a routing daemon on every virtual host, or ground truth."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from node_agent.aodv.reader import AodvReader
from node_agent.aodv.service import AodvService
from node_agent.host.virtual_routes import VirtualRoutes
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.overhead import Counts, OverheadSource, refusal_counts
from node_agent.manet.membership import Manet, manet_of
from node_agent.manet.seal import Seal
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import RoutingOverhead
from node_agent.olsr.broadcast import PortBroadcast
from node_agent.olsr.daemon import Interface
from node_agent.olsr.reader import OlsrCoreReader
from node_agent.olsr.service import OlsrService
from node_agent.olsr.wire import number
from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from node_agent.transport.keys import derive
from orchestrator.backends.sim.truth import GroundTruth
from orchestrator.errors import BadInput
from orchestrator.radio.truth import Links
from orchestrator.services.aodv import aodv_config
from orchestrator.services.olsr import olsr_config
from orchestrator.spec import routing as spec

INTERFACE = "wlan0"


class Daemon(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Joined(NamedTuple):
    """What a node has of routing: its agent's costs and counters, and the daemon, where there is one."""

    link_state: LinkState
    overhead: OverheadSource | None = None
    daemon: Daemon | None = None


class SimRouting(Protocol):
    def next_hop(self, node: str) -> NextHop:
        """For the node's host, which is there before the daemon that will run on it."""
        ...

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        """``wanted``: the addresses whose costs the node's agent will ask for."""
        ...

    def update(self, links: Links) -> None:
        """The true links from now on; protocols find out by themselves."""
        ...


def make_routing(
    routing: spec.AnyRouting, hosts: Mapping[str, str], seed: int, now_ns: Callable[[], int]
) -> SimRouting:
    node_at = {host: node for node, host in hosts.items()}
    match routing:
        case spec.GroundTruth():
            return TrueRouting(routing.metric, node_at, now_ns)
        case spec.Olsr():
            return OlsrRouting(routing, node_at, seed)
        case spec.Aodv():
            return AodvRouting(routing, node_at, seed)
        case _:
            raise BadInput(f"{routing.protocol} does not run in virtual time")


class TrueRouting:
    def __init__(
        self, metric: spec.TrueMetric, node_at: Mapping[str, str], now_ns: Callable[[], int]
    ) -> None:
        self._truth = GroundTruth(now_ns, metric)
        self._node_at = node_at

    def next_hop(self, node: str) -> NextHop:
        def towards(destination: str, /) -> str | None:
            there = self._node_at.get(destination)
            return None if there is None else self._truth.next_hop(node, there)

        return towards

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        return Joined(self._truth)

    def update(self, links: Links) -> None:
        self._truth.update(links)


class Group:
    """The nodes of a simulation as an ad-hoc network. Its key, where there is one, follows from the seed."""

    def __init__(self, node_at: Mapping[str, str], seed: int, authentication: bool) -> None:
        self.manet: Manet = manet_of((), tuple(node_at))
        self._key = derive(str(seed).encode(), b"routing") if authentication else b""

    def seal(self, protocol: str, now_ns: Callable[[], int]) -> Seal | None:
        return Seal(self._key, protocol, now_ns) if self._key else None


class OlsrRouting:
    def __init__(self, routing: spec.Olsr, node_at: Mapping[str, str], seed: int) -> None:
        self._config = olsr_config(routing)
        self._group = Group(node_at, seed, routing.authentication)
        self._metric = routing.metric
        self._node_at = node_at
        self._seed = seed
        self._tables: dict[str, VirtualRoutes] = {}

    def next_hop(self, node: str) -> NextHop:
        table = self._tables[node] = VirtualRoutes(self._node_at)
        return table

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        service = OlsrService(
            self._config,
            [Interface(INTERFACE, number(port.host))],
            PortBroadcast(port),
            self._tables[host.node],
            port.now_ns,
            random.Random(f"olsr/{self._seed}/{host.node}"),
            self._group.manet,
            self._group.seal("olsr", port.now_ns),
        )
        counters = service.daemon.counters
        reader = OlsrCoreReader(service.daemon.view, port.now_ns, self._config.quality)
        link_state = MeasuredLinkState(reader, self._node_at, port.now_ns, self._metric)
        return Joined(link_state, Counted("olsr", counters.kinds, counters.refusals), service)

    def update(self, links: Links) -> None:
        """Its HELLOs tell."""


class AodvRouting:
    def __init__(self, routing: spec.Aodv, node_at: Mapping[str, str], seed: int) -> None:
        self._config = aodv_config(routing, "sim")
        self._group = Group(node_at, seed, routing.authentication)
        self._metric = routing.metric
        self._node_at = node_at
        self._seed = seed

    def next_hop(self, node: str) -> NextHop:
        """The daemon decides about whole packets, and while it does not run nobody does."""
        return lambda destination: None

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        rng = random.Random(f"aodv/{self._seed}/{host.node}")
        seal = self._group.seal("aodv", port.now_ns)
        service = AodvService(host, self._config, self._node_at, rng, self._group.manet, seal)
        reader = AodvReader(service, wanted)
        link_state = MeasuredLinkState(reader, self._node_at, port.now_ns, self._metric)
        counters = service.counters
        return Joined(link_state, Counted("aodv", counters.kinds, counters.refusals), service)

    def update(self, links: Links) -> None:
        """It is told by what no longer arrives."""


class Count(Protocol):
    sent: int
    sent_bytes: int
    forwarded: int
    forwarded_bytes: int


class Counted:
    """The counters of a daemon in the same process, by kind of message, and what it refused."""

    def __init__(self, protocol: str, kinds: Mapping[str, Count], refusals: Refusals) -> None:
        self._protocol = protocol
        self._kinds = kinds
        self._refusals = refusals

    async def read(self) -> Counts:
        sent = [
            RoutingOverhead(
                self._protocol, kind, count.sent, count.sent_bytes, count.forwarded, count.forwarded_bytes
            )
            for kind, count in sorted(self._kinds.items())
        ]
        return (*sent, *refusal_counts(self._refusals))
