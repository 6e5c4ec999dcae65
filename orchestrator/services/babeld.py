"""babeld (RFC 8966): a distance vector over IPv6 link-local packets that carries IPv4 host routes."""

from collections.abc import Mapping
from typing import ClassVar

from node_agent.linkstate.config import LinkStateConfig
from orchestrator.services.base import Executable, Place, RoutingService
from orchestrator.services.program import Argv
from orchestrator.spec.routing import Babel

LOCAL_PORT = 33123
_CONFIG = "babeld.conf"


class BabeldService(RoutingService):
    protocol = "babel"
    executables: ClassVar = (Executable("babeld", "apt install babeld"),)
    ipv6 = True

    def __init__(self, routing: Babel) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig("babeld", metric=self._routing.metric)

    def files(self, place: Place) -> Mapping[str, str]:
        routing = self._routing
        lines = [
            f"local-port {LOCAL_PORT}",
            # Its own files of state and process id would be the host's, shared by all nodes.
            f"state-file {place.directory / 'babeld.state'}",
            f"pid-file {place.directory / 'babeld.pid'}",
            # A wireless link: its quality is measured, and a neighbour's echo is no loop.
            f"interface {place.interface} type wireless hello-interval {routing.hello:g} "
            f"update-interval {routing.update:g}",
            f"redistribute local ip {place.address}/32 eq 32",
            "redistribute local deny",
        ]
        return {_CONFIG: "\n".join(lines) + "\n"}

    def program(self, place: Place) -> Argv:
        return Argv((self.executables[0].name, "-c", str(place.directory / _CONFIG)))
