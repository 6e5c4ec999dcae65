"""The routing table of a virtual host: it asks for the next node, protocols know addresses."""

from collections.abc import Mapping

from node_agent.route_table import HostRoute


class VirtualRoutes:
    """A ``RouteTable`` that is also the ``NextHop`` of a ``VirtualHost``.

    Routes to whole networks are left out: behind a virtual host there is none.
    """

    def __init__(self, node_at: Mapping[str, str]) -> None:
        """``node_at``: which node has an address."""
        self._node_at = node_at
        self._next: dict[str, str] = {}

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        node_at = self._node_at
        self._next = {
            destination: node_at[gateway or destination]
            for destination, (gateway, _, _) in routes.items()
            if (gateway or destination) in node_at
        }

    def close(self) -> None:
        self._next = {}

    def __call__(self, destination: str, /) -> str | None:
        return self._next.get(destination)
