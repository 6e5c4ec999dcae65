"""OONF's olsrd2 (OLSRv2, RFC 7181), asked over its telnet port."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from node_agent.linkstate.config import LinkStateConfig
from orchestrator.services.base import Executable, Place, RoutingService
from orchestrator.services.program import Argv
from orchestrator.services.sections import LinkStateProtocol, MetricOf

_CONFIG = "olsrd2.conf"
_READER = "oonf"
MEASURED_OVER_S = 32.0
"""olsrd2's default: 32 intervals of 1 s, over which its metric counts packets."""


class Olsrd2(LinkStateProtocol):
    """OONF's olsrd2 (OLSRv2), where it is installed; its own costs are airtimes."""

    protocol: Literal["olsrd2"]
    metric: Annotated[str, MetricOf(_READER)] = "airtime"

    def settles_after(self) -> float:
        return super().settles_after() + (0.0 if self.metric == "hops" else MEASURED_OVER_S)


class Olsrd2Service(RoutingService):
    protocol = "olsrd2"
    section = Olsrd2
    executables: ClassVar = (
        Executable("olsrd2_static", "Debian has no olsrd2: build it from github.com/OLSR/OONF"),
    )

    def __init__(self, routing: Olsrd2) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig(_READER, metric=self._routing.metric)

    def files(self, place: Place) -> Mapping[str, str]:
        routing = self._routing
        lines = [
            "[global]",
            "    fork no",
            "    lockfile -",
            "[olsrv2]",
            f"    tc_interval {routing.tc:g}",
            f"    tc_validity {routing.tc_validity:g}",
            # By default they also bind to ::1. On a node without IPv6 that fails, over and over, with a line
            # in the log each time.
            "[telnet]",
            "    bindto 127.0.0.1",
            "[http]",
            "    bindto 127.0.0.1",
            f"[interface={place.interface}]",
            f"    hello_interval {routing.hello:g}",
            f"    hello_validity {routing.hello_validity:g}",
        ]
        return {_CONFIG: "\n".join(lines) + "\n"}

    def program(self, place: Place) -> Argv:
        return Argv((self.executables[0].name, "-l", str(place.directory / _CONFIG)))
