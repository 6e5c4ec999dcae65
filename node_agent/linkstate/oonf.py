"""Reads OONF's olsrd2 (OLSRv2): its neighbours and edges, over telnet (port 2009) or HTTP (port 1980).

Its metric is the airtime of a packet in one direction. Without known bit rates only ratios mean something, so
costs are relative to the default of a perfect link: 1.45 is a link on which a packet takes 1.45 times as
long. Every node is listed once by IPv4 and once by IPv6; the latter is ignored.

Relays (MPRs) alone announce edges, to those whom they relay for. The way back of such a link is often not
told; it is taken to cost the same, because the daemons announce symmetric links only. Without it no way would
lead through a node that relays for nobody.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from node_agent.linkstate.ask import ask, get, in_turn
from node_agent.linkstate.olsrd_jsoninfo import decode
from node_agent.linkstate.reader import Edge, Edges, Garbage, Reading, is_ipv4, number
from node_agent.linkstate.source import asking

SOURCE = "oonf"
TELNET_PORT = 2009
HTTP_PORT = 1980
PERFECT_RAW = 2105088
_MAX_RAW = 16776960
"""The largest metric of RFC 7181; anything above means that there is no link."""
_DOMAIN = "0"


class Originator(Struct):
    originator: str


class Originators(Struct):
    originator: list[Originator]


class Neighbor(Struct):
    """The daemon writes some of its numbers and all its booleans as strings."""

    neighbor_originator: str
    neighbor_symmetric: str
    domain: int | str
    domain_metric_in_raw: int | str
    domain_metric_out_raw: int | str


class Neighbors(Struct):
    neighbor: list[Neighbor]


class TopologyEdge(Struct):
    node: str
    edge: str
    domain: int | str
    domain_metric_out_raw: int | str


class TopologyEdges(Struct):
    edge: list[TopologyEdge]


Told = dict[tuple[str, str], float]
"""Raw metrics by sender and receiver."""
Question = Callable[[str, int, str], Awaitable[bytes]]


async def by_telnet(host: str, port: int, command: str) -> bytes:
    return await ask(host, port, f"/{command}\n".encode())


async def by_http(host: str, port: int, command: str) -> bytes:
    return await get(host, port, f"/telnet/{command.replace(' ', '%20')}")


class OonfReader:
    def __init__(
        self, host: str = "127.0.0.1", port: int = TELNET_PORT, question: Question = by_telnet
    ) -> None:
        self._host = host
        self._port = port
        self._question = question

    async def read(self) -> Reading:
        originators, neighbours, edges = await in_turn(
            self._get("olsrv2info json originator"),
            self._get("nhdpinfo json neighbor"),
            self._get("olsrv2info json edge"),
        )
        return parse(originators, neighbours, edges)

    async def _get(self, command: str) -> bytes:
        return await self._question(self._host, self._port, command)


def parse(originators: bytes, neighbours: bytes, edges: bytes) -> Reading:
    own = [o.originator for o in decode(originators, Originators).originator if is_ipv4(o.originator)]
    if not own:
        raise Garbage("the daemon has no IPv4 originator")
    here = own[0]
    told: Told = {}
    for n in decode(neighbours, Neighbors).neighbor:
        if n.neighbor_symmetric == "true":
            _tell(told, here, n.neighbor_originator, n.domain, n.domain_metric_out_raw)
            _tell(told, n.neighbor_originator, here, n.domain, n.domain_metric_in_raw)
    for e in decode(edges, TopologyEdges).edge:
        if e.node != here:  # its own measurements are fresher than what it advertises
            _tell(told, e.node, e.edge, e.domain, e.domain_metric_out_raw)
    for (sender, receiver), raw in list(told.items()):
        if receiver != here:  # a neighbour that it does not name is none
            told.setdefault((receiver, sender), raw)
    return Reading(_edges(here, told), "airtime", SOURCE)


def _tell(told: Told, sender: str, receiver: str, domain: int | str, announced: int | str) -> None:
    raw = number(announced, "metric")
    if str(domain) == _DOMAIN and is_ipv4(sender) and is_ipv4(receiver):
        told[sender, receiver] = raw


def _edges(here: str, told: Told) -> Edges:
    edges: Edges = {here: {}}
    for (sender, receiver), raw in told.items():
        edges.setdefault(receiver, {})
        row = edges.setdefault(sender, {})
        if 0 < raw <= _MAX_RAW:
            row[receiver] = Edge(raw / PERFECT_RAW)
    return edges


METRICS = ("airtime", "hops")
TELNET_READER = asking("olsrd2 (OONF) by its telnet plug-in", METRICS, OonfReader, TELNET_PORT)
HTTP_READER = asking(
    "olsrd2 (OONF) by its http plug-in",
    METRICS,
    lambda host, port: OonfReader(host, port, by_http),
    HTTP_PORT,
)
