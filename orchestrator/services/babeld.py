"""babeld (RFC 8966): a distance vector over IPv6 link-local packets that carries IPv4 host routes."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from node_agent.linkstate.config import LinkStateConfig
from orchestrator.services.base import Executable, Place, RoutingService
from orchestrator.services.program import Argv
from orchestrator.services.sections import HELLOS_MISSED, MetricOf
from orchestrator.spec.routing import Interval, Proactive

LOCAL_PORT = 33123
_CONFIG = "babeld.conf"
_READER = "babeld"


class Babel(Proactive):
    """babeld, where it is installed; a distance vector: each node knows its own costs only."""

    protocol: Literal["babel"]
    metric: Annotated[str, MetricOf(_READER)] = "etx"
    hello: Interval = 1.0
    update: Interval = 4.0

    def notices_after(self, link_feedback: bool) -> float:
        return HELLOS_MISSED * self.hello

    def settles_after(self) -> float:
        """Five HELLOs have 94 % of the weight of the 16 that babeld counts; then an update tells others."""
        return 5 * self.hello + self.update


class BabeldService(RoutingService):
    protocol = "babel"
    section = Babel
    executables: ClassVar = (Executable("babeld", "apt install babeld"),)
    ipv6 = True

    def __init__(self, routing: Babel) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig(_READER, metric=self._routing.metric)

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
