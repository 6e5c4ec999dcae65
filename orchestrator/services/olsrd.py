"""olsrd of olsr.org, as the seed's testbed used it; asked through its jsoninfo plug-in."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from node_agent.linkstate.config import LinkStateConfig
from orchestrator.services.base import Executable, Place, RoutingService
from orchestrator.services.program import Argv
from orchestrator.services.sections import OLSRD_READER, QUALITY, OlsrLike

JSONINFO_PORT = 9090
_CONFIG = "olsrd.conf"


class Olsrd(OlsrLike):
    """The olsrd of olsr.org, where it is installed."""

    protocol: Literal["olsrd"]
    quality: Literal["etx_ff", "etx_float", "hops"] | None = QUALITY


class OlsrdService(RoutingService):
    protocol = "olsrd"
    section = Olsrd
    executables: ClassVar = (
        Executable("olsrd", "Debian has no olsrd: build it from github.com/OLSR/olsrd, with jsoninfo"),
    )

    def __init__(self, routing: Olsrd) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig(OLSRD_READER, metric=self._routing.metric)

    def files(self, place: Place) -> Mapping[str, str]:
        return {_CONFIG: self._config(place)}

    def program(self, place: Place) -> Argv:
        return Argv((self.executables[0].name, "-f", str(place.directory / _CONFIG), "-nofork"))

    def _config(self, place: Place) -> str:
        routing = self._routing
        quality = routing.link_quality
        rated = ["LinkQualityLevel 2", f'LinkQualityAlgorithm "{quality}"', "LinkQualityFishEye 1"]
        lines = [
            "DebugLevel 0",
            "IpVersion 4",
            f'LockFile "{place.directory / "olsrd.lock"}"',
            *(["LinkQualityLevel 0"] if quality == "hops" else rated),
            'LoadPlugin "olsrd_jsoninfo.so.1.1"',
            "{",
            f'    PlParam "port" "{JSONINFO_PORT}"',
            '    PlParam "accept" "127.0.0.1"',
            "}",
            f'Interface "{place.interface}"',
            "{",
            # The address is a /32, which has no broadcast address of its own.
            "    IPv4Broadcast 255.255.255.255",
            *_timer("Hello", routing.hello, routing.hello_validity),
            *_timer("Tc", routing.tc, routing.tc_validity),
            *_timer("Mid", routing.tc, routing.tc_validity),
            *_timer("Hna", routing.tc, routing.tc_validity),
            "}",
        ]
        return "\n".join(lines) + "\n"


def _timer(name: str, interval: float, validity: float) -> tuple[str, str]:
    # olsrd reads neither 1 nor 1e-1 here.
    return f"    {name}Interval {interval:.3f}", f"    {name}ValidityTime {validity:.3f}"
