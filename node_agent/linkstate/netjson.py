"""Reads a NetJSON NetworkGraph: from olsrd's netjson plug-in (port 2005), or from our own daemon.

olsrd lists its own links twice: once as measured here (by interface addresses, and mirrored), and once as the
neighbour reports them. The later one counts, as in the topology of the other plug-ins.
"""

from msgspec import Struct

from node_agent.linkstate.ask import get
from node_agent.linkstate.olsrd import Link, Tables, reading
from node_agent.linkstate.olsrd_jsoninfo import decode
from node_agent.linkstate.reader import Garbage, Reading, number
from node_agent.linkstate.source import OLSR_METRICS, asking

SOURCE = "netjson"
PORT = 2005
_PROTOCOL = "olsrv1"


class Node(Struct):
    id: str
    local_addresses: list[str] = []


class GraphLink(Struct):
    source: str
    target: str
    cost: float


class NetworkGraph(Struct):
    type: str
    protocol: str
    metric: str
    nodes: list[Node]
    links: list[GraphLink]


class NetjsonReader:
    def __init__(self, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._host = host
        self._port = port

    async def read(self) -> Reading:
        return parse(await get(self._host, self._port, "/NetworkGraph"))


def parse(answer: bytes) -> Reading:
    graph = decode(answer, NetworkGraph)
    if graph.type != "NetworkGraph" or graph.protocol != _PROTOCOL:
        raise Garbage(f"this is a {graph.type[:40]!r} of {graph.protocol[:40]!r}, not a graph of {_PROTOCOL}")
    links = [Link(link.source, link.target, number(link.cost, "cost")) for link in graph.links]
    aliases = {alias: node.id for node in graph.nodes for alias in node.local_addresses}
    return reading(Tables(links, aliases, hop_count=graph.metric == "hops"), SOURCE)


READER = asking(
    "NetJSON graphs: olsrd's netjson plug-in and our own daemon", OLSR_METRICS, NetjsonReader, PORT
)
