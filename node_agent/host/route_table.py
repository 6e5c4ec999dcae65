"""Where a routing protocol puts its routes: the kernel's table, a virtual host's, or nowhere.

The protocol always gives the whole table; the implementation finds out what changed.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class HostRoute(NamedTuple):
    """Over the neighbour ``gateway``, or directly (None)."""

    gateway: str | None
    interface: str
    hops: int


class RouteTable(Protocol):
    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        """The whole table, by destination: an address, or a network (``192.168.55.0/24``).

        It does not change any more, but may be computed only when it is looked at.
        """
        ...

    def close(self) -> None:
        """Remove all that was put there. May be repeated."""
        ...


class Difference(NamedTuple):
    """Destinations, in the order of the tables they come from."""

    gone: tuple[str, ...]
    new: tuple[str, ...]
    changed: tuple[str, ...]


def difference(old: Mapping[str, T], new: Mapping[str, T]) -> Difference:
    return Difference(
        tuple([destination for destination in old if destination not in new]),
        tuple([destination for destination in new if destination not in old]),
        tuple(
            [
                destination
                for destination in new
                if destination in old and old[destination] != new[destination]
            ]
        ),
    )


class NoRoutes:
    """For a daemon that may look and tell, but not touch."""

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        """Kept by the daemon alone."""

    def close(self) -> None:
        """Nothing was put anywhere."""


class LoggedRoutes:
    """Another table, and a line for each route that comes, goes or changes."""

    def __init__(self, table: RouteTable, write: Callable[[str], None]) -> None:
        self._table = table
        self._write = write
        self._routes: dict[str, HostRoute] = {}

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        gone, new, changed = difference(self._routes, routes)
        for destination in gone:
            self._write(f"- {destination}")
        for destination in new:
            self._write(f"+ {_described(destination, routes[destination])}")
        for destination in changed:
            self._write(f"~ {_described(destination, routes[destination])}")
        self._routes = dict(routes)
        self._table.replace(routes)

    def close(self) -> None:
        self._table.close()


def _described(destination: str, route: HostRoute) -> str:
    via = "" if route.gateway is None else f" via {route.gateway}"
    return f"{destination}{via} dev {route.interface} hops {route.hops}"
