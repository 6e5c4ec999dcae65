"""The routing table of a virtual host: it asks for the next node, protocols know addresses."""

from collections.abc import Mapping

from node_agent.host.route_table import HostRoute


class VirtualRoutes:
    """A ``RouteTable`` that is also the ``NextHop`` of a ``VirtualHost``.

    Routes to whole networks lead nowhere: behind a virtual host there is none.
    """

    def __init__(self, node_at: Mapping[str, str]) -> None:
        """``node_at``: which node has an address."""
        self._node_at = node_at
        self._routes: Mapping[str, HostRoute] = {}

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        self._routes = routes

    def close(self) -> None:
        self._routes = {}

    def __call__(self, destination: str, /) -> str | None:
        route = self._routes.get(destination)
        return None if route is None else self._node_at.get(route.gateway or destination)
