"""The routing table of a virtual host. Protocols use addresses; the host needs the next node's name."""

from collections.abc import Mapping

from node_agent.host.route_table import HostRoute


class VirtualRoutes:
    """A ``RouteTable`` that is also the ``NextHop`` of a ``VirtualHost``.

    It ignores routes to networks: there is none behind a virtual host.
    """

    def __init__(self, node_at: Mapping[str, str]) -> None:
        """``node_at`` maps addresses to nodes."""
        self._node_at = node_at
        self._routes: Mapping[str, HostRoute] = {}
        self._next: dict[str, str | None] = {}  # what was asked since the routes were replaced

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        self._routes = routes
        self._next = {}

    def close(self) -> None:
        self.replace({})

    def __call__(self, destination: str, /) -> str | None:
        if destination in self._next:
            return self._next[destination]
        route = self._routes.get(destination)
        node = None if route is None else self._node_at.get(route.gateway or destination)
        self._next[destination] = node
        return node
