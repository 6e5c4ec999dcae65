"""Reads the kernel's routing table (/proc/net/route), filled by any daemon, as hop counts, and as what a node
can send to.

A host route without another node as gateway is one hop. Behind a gateway the route's metric counts, because
some daemons set it to the number of hops. If it is less, or 2 for all routes (olsrd's default, and ours),
only "two or more" is known. A node that is not in the table cannot be reached.
"""

import sys
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple

from node_agent.linkstate.reader import Edge, Garbage, LinkStateError, Reading, Refused
from node_agent.linkstate.source import LinkStateReader

SOURCE = "kernel"
TABLE = Path("/proc/self/net/route")
_UP, _REJECT = 0x1, 0x200
_HOST = 32
_MOST_HOPS = 255
_ADDRESSES = ("Destination", "Gateway", "Mask")
_COLUMNS = (*_ADDRESSES, "Flags", "Metric")


class KernelRoute(NamedTuple):
    network: IPv4Network
    gateway: str
    metric: int


class KernelReader:
    """``own``: this node's address, which the table does not contain."""

    def __init__(self, own: str, table: Path = TABLE) -> None:
        self._own = own
        self._table = table

    async def read(self) -> Reading:
        return parse(_read(self._table), self._own)


class KernelReach:
    """Says which nodes the kernel has a way to. ``own``: this node's address.

    The network of the node's own interface is no way: only neighbours are next to it. A network behind
    another interface is one, because routing daemons leave its addresses alone.
    """

    def __init__(self, own: str, table: Path = TABLE) -> None:
        self._own = IPv4Address(own)
        self._table = table

    def among(self, addresses: Iterable[str]) -> set[str]:
        """Returns those of the addresses that have a route; all if this machine does not show its routes."""
        try:
            found = [route.network for route in routes(_read(self._table))]
        except LinkStateError:
            return set(addresses)
        hosts = {str(network.network_address) for network in found if network.prefixlen == _HOST}
        others = [network for network in found if 0 < network.prefixlen < _HOST and self._own not in network]
        return {
            address
            for address in addresses
            if address in hosts or any(IPv4Address(address) in network for network in others)
        }


def _read(table: Path) -> str:
    try:
        return table.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read {table}: {error}") from error


def parse(text: str, own: str) -> Reading:
    found: list[tuple[int, str, int]] = []
    for network, gateway, metric in routes(text):
        destination = str(network.network_address)
        if network.prefixlen == _HOST and destination != own:
            direct = gateway in ("0.0.0.0", destination)
            hops = 1 if direct else min(max(2, metric), _MOST_HOPS)
            found.append((metric, destination, hops))
    # The kernel uses the route with the lowest metric. Sorted last, it replaces the others.
    edges = {node: Edge(float(hops), hops=hops) for _, node, hops in sorted(found, reverse=True)}
    return Reading({own: edges}, "hops", SOURCE, own_only=True)


def routes(text: str) -> list[KernelRoute]:
    """Returns the routes that can be used. Raises Garbage."""
    titles, *rows = (line.split() for line in text.splitlines()) if text else [[]]
    if not set(_COLUMNS) <= set(titles):
        raise Garbage("this is not the kernel's routing table")
    found = []
    for row in rows:
        cells = dict(zip(titles, row, strict=False))
        try:
            flags, metric = int(cells["Flags"], 16), int(cells["Metric"])
            destination, gateway, mask = (_address(cells[name]) for name in _ADDRESSES)
            network = IPv4Network((destination, mask))
        except (KeyError, ValueError, OverflowError) as error:
            raise Garbage(f"a row of the kernel's routing table cannot be read: {error}") from None
        if flags & _UP and not flags & _REJECT:
            found.append(KernelRoute(network, gateway, metric))
    return found


def _address(text: str) -> str:
    """Converts an address as the kernel prints it: in network order, read as a number of the machine."""
    return str(IPv4Address(int(text, 16).to_bytes(4, sys.byteorder)))


READER = LinkStateReader(
    "the kernel's routing table, in hops",
    ("hops",),
    lambda source: KernelReader(source.node.host),
    asks=True,
)
