"""Prevents a routing protocol from overriding routes of the machine's other interfaces.

The kernel uses the most specific route: a host route of the protocol would win against the route to a control
network that somebody else made.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple

from node_agent.host.route_table import HostRoute, RouteTable

KERNEL_ROUTES = Path("/proc/self/net/route")


class OtherRoute(NamedTuple):
    network: IPv4Network
    interface: str


class GuardedRoutes:
    """``own``: the protocol's networks. A destination in them is the protocol's unless another interface has
    a route that is at least as specific. ``interfaces``: where the protocol puts its routes. ``report`` is
    called once for each foreign route that is left alone."""

    def __init__(
        self,
        table: RouteTable,
        own: Iterable[IPv4Network],
        interfaces: Collection[str],
        report: Callable[[str], None],
        routes: Path = KERNEL_ROUTES,
    ) -> None:
        self._table = table
        self._own = tuple(own)
        self._interfaces = frozenset(interfaces)
        self._report = report
        self._routes = routes
        self._reported: set[OtherRoute] = set()

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        others = self._others()
        kept = {}
        for destination, route in routes.items():
            claimed = claimed_by(IPv4Network(destination), self._own, others) if others else None
            if claimed is None:
                kept[destination] = route
            elif claimed not in self._reported:
                self._reported.add(claimed)
                self._report(
                    f"{destination} is reached by {claimed.interface} ({claimed.network}): left alone"
                )
        self._table.replace(kept)

    def close(self) -> None:
        self._table.close()

    def _others(self) -> list[OtherRoute]:
        try:
            text = self._routes.read_text("ascii")
        except OSError:
            return []  # no such file here: only the kernel's own order of routes counts
        return [each for each in read_routes(text) if each.interface not in self._interfaces]


def claimed_by(
    destination: IPv4Network, own: Iterable[IPv4Network], others: Iterable[OtherRoute]
) -> OtherRoute | None:
    """Returns the other interface's route that must be left alone, if there is one."""
    specific = max((each.prefixlen for each in own if destination.subnet_of(each)), default=0)
    for other in others:
        if other.network.prefixlen >= max(1, specific) and destination.subnet_of(other.network):
            return other
    return None


def read_routes(text: str) -> Iterator[OtherRoute]:
    """Reads the kernel's main table from /proc/net/route, without
    default routes: any other route wins over them."""
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and (mask := _number(words[7])):
            address = IPv4Address(_number(words[1]) & mask)
            yield OtherRoute(IPv4Network((address, mask.bit_count())), words[0])


def _number(text: str) -> int:
    """The kernel prints addresses in network order, read as a native integer."""
    return int.from_bytes(int(text, 16).to_bytes(4, sys.byteorder), "big")
