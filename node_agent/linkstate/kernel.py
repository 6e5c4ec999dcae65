"""Reads the kernel's routing table (/proc/net/route), filled by any daemon, as hop counts.

A host route without another node as gateway is one hop. Behind a gateway the route's metric counts, because
some daemons set it to the number of hops. If it is less, or 2 for all routes (olsrd's default, and ours),
only "two or more" is known. A node that is not in the table cannot be reached.
"""

import sys
from ipaddress import IPv4Address
from pathlib import Path

from node_agent.linkstate.reader import Edge, Garbage, Reading, Refused
from node_agent.linkstate.source import LinkStateReader

SOURCE = "kernel"
TABLE = Path("/proc/self/net/route")
_UP, _REJECT = 0x1, 0x200
_ALL_BITS = 0xFFFFFFFF
_MOST_HOPS = 255
_COLUMNS = ("Destination", "Gateway", "Flags", "Metric", "Mask")


class KernelReader:
    """``own``: this node's address, which the table does not contain."""

    def __init__(self, own: str, table: Path = TABLE) -> None:
        self._own = own
        self._table = table

    async def read(self) -> Reading:
        try:
            text = self._table.read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"cannot read {self._table}: {error}") from error
        return parse(text, self._own)


def parse(text: str, own: str) -> Reading:
    titles, *rows = (line.split() for line in text.splitlines()) if text else [[]]
    if not set(_COLUMNS) <= set(titles):
        raise Garbage("this is not the kernel's routing table")
    routes: list[tuple[int, str, int]] = []
    for row in rows:
        cells = dict(zip(titles, row, strict=False))
        try:
            flags, mask = int(cells["Flags"], 16), int(cells["Mask"], 16)
            destination, gateway = (_address(cells[name]) for name in ("Destination", "Gateway"))
            metric = int(cells["Metric"])
        except (KeyError, ValueError, OverflowError) as error:
            raise Garbage(f"a row of the kernel's routing table cannot be read: {error}") from None
        if mask == _ALL_BITS and flags & _UP and not flags & _REJECT and destination != own:
            direct = gateway in ("0.0.0.0", destination)
            hops = 1 if direct else min(max(2, metric), _MOST_HOPS)
            routes.append((metric, destination, hops))
    # The kernel uses the route with the lowest metric. Sorted last, it replaces the others.
    edges = {node: Edge(float(hops), hops=hops) for _, node, hops in sorted(routes, reverse=True)}
    return Reading({own: edges}, "hops", SOURCE, own_only=True)


def _address(text: str) -> str:
    """Converts an address as the kernel prints it: in network order, read as a number of the machine."""
    return str(IPv4Address(int(text, 16).to_bytes(4, sys.byteorder)))


READER = LinkStateReader(
    "the kernel's routing table, in hops",
    ("hops",),
    lambda source: KernelReader(source.node.host),
    asks=True,
)
