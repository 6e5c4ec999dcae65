"""The interface to where a routing protocol puts its routes: the kernel, a virtual host, or nowhere.

The protocol always passes the whole table; the implementation finds out what changed.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class HostRoute(NamedTuple):
    """A route over the neighbour ``gateway``, or to a neighbour directly (None)."""

    gateway: str | None
    interface: str
    hops: int


class RouteTable(Protocol):
    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        """Sets the whole table, by destination: an address or a network (``192.168.55.0/24``).

        The mapping does not change later, but may be computed only when it is read.
        """
        ...

    def close(self) -> None:
        """Removes all installed routes. May be repeated."""
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
    """Installs no routes, for a daemon that may only observe."""

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        """Does nothing: only the daemon knows the routes."""

    def close(self) -> None:
        """Does nothing: no route was installed."""


class LoggedRoutes:
    """Logs a line for each route that is added, removed or changed, and
    passes the routes on to another table."""

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
