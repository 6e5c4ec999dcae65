"""Reads olsrd's jsoninfo plug-in (port 9090), or our own daemon, which answers alike.

olsrd 0.9 reports costs as ETX with decimals; 0.6 reports the integers that it calculates with.
"""

from typing import TypeVar

from msgspec import Struct, field

from node_agent.linkstate.ask import SIZE_LIMIT, get, in_turn
from node_agent.linkstate.olsrd import BROKEN, Link, Tables, reading
from node_agent.linkstate.reader import Garbage, Reading, number
from node_agent.linkstate.source import OLSR_METRICS, asking
from node_agent.model.checked import Checked, Refused

SOURCE = "olsrd_jsoninfo"
PORT = 9090
_SCALES = (1024, 65536)
"""What ETX 1.0 is in the integers of olsrd 0.6: with etx_ff and etx_float, and with etx_fpm."""


class TopologyEdge(Struct, rename="camel"):
    last_hop: str = field(name="lastHopIP")
    destination: str = field(name="destinationIP")
    tc_edge_cost: int | float
    link_quality: float
    neighbor_link_quality: float


class Topology(Struct):
    topology: list[TopologyEdge]


class Address(Struct, rename="camel"):
    ip_address: str


class MidEntry(Struct, rename="camel"):
    """0.9 has an object ``main``, 0.6 the address itself."""

    aliases: list[Address]
    main: Address | None = None
    ip_address: str = ""


class Mid(Struct):
    mid: list[MidEntry]


class OlsrInterface(Struct):
    ipv4: str = field(default="", name="ipv4Address")


class Interface(Struct):
    """0.9 has the address within ``olsrInterface``, 0.6 beside it."""

    olsr: OlsrInterface = field(default_factory=OlsrInterface, name="olsrInterface")
    ipv4: str = field(default="", name="ipv4Address")


class Interfaces(Struct):
    interfaces: list[Interface]


T = TypeVar("T")


class JsoninfoReader:
    def __init__(self, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._host = host
        self._port = port

    async def read(self) -> Reading:
        topology, mid, interfaces = await in_turn(
            self._get("/topology"), self._get("/mid"), self._get("/interfaces")
        )
        return parse(topology, mid, interfaces)

    async def _get(self, path: str) -> bytes:
        return await get(self._host, self._port, path)


def parse(topology: bytes, mid: bytes, interfaces: bytes) -> Reading:
    tables = Tables(
        [_link(edge) for edge in decode(topology, Topology).topology],
        {
            alias.ip_address: entry.main.ip_address if entry.main else entry.ip_address
            for entry in decode(mid, Mid).mid
            for alias in entry.aliases
        },
        [
            address
            for interface in decode(interfaces, Interfaces).interfaces
            if (address := interface.olsr.ipv4 or interface.ipv4)
        ],
    )
    return reading(tables, SOURCE)


def decode(data: bytes, kind: type[T]) -> T:
    """Decodes JSON. Raises Garbage for anything else."""
    try:
        return Checked[T](kind, SIZE_LIMIT).decode(data)
    except Refused as error:
        raise Garbage(f"this is not JSON as expected: {error}") from error


def _link(edge: TopologyEdge) -> Link:
    quality = number(edge.link_quality, "link quality")
    delivery = quality * number(edge.neighbor_link_quality, "neighbour link quality")
    cost = number(edge.tc_edge_cost, "cost")
    if isinstance(edge.tc_edge_cost, int) and 0 < cost < BROKEN and delivery:
        cost /= min(_SCALES, key=lambda scale: abs(cost * delivery - scale))
    return Link(edge.last_hop, edge.destination, cost, delivery)


READER = asking("olsrd's jsoninfo plug-in, and our own OLSR daemon", OLSR_METRICS, JsoninfoReader, PORT)
