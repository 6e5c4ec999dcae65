"""olsrd of olsr.org, as the seed's testbed used it; asked through its jsoninfo plug-in.

It always rates links (LinkQualityLevel 2). When it only counts hops (level 0), it learns links from TCs
without looking for new routes. So for ``metric: hops`` its routes follow ETX, and agents count the hops of
the links that it knows.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from node_agent.linkstate.config import LinkStateConfig
from node_agent.olsr.config import Quality
from orchestrator.services.base import Executable, Place, RoutingService
from orchestrator.services.program import Argv
from orchestrator.services.sections import OLSRD_READER, OlsrLike
from orchestrator.spec.problems import unusable

JSONINFO_PORT = 9090
_CONFIG = "olsrd.conf"
_PLUGIN = "olsrd_jsoninfo.so.1.1"


class Olsrd(OlsrLike):
    """The olsrd of olsr.org, where it is installed."""

    protocol: Literal["olsrd"]
    quality: Literal["etx_ff", "etx_float"] | None = Field(
        default=None,
        description="How the daemons rate links; if not given, etx_ff, also where the metric is hops: "
        "olsrd does not look for new routes when it counts hops itself",
    )

    @field_validator("quality", mode="before")
    @classmethod
    def _rates_links(cls, value: Any) -> Any:
        if value == "hops":
            text = "olsrd does not look for new routes when it counts hops itself (LinkQualityLevel 0)"
            raise unusable(
                text, "leave it out: routes then follow etx_ff, and agents count hops (metric: hops)"
            )
        return value

    @property
    def link_quality(self) -> Quality:
        return self.quality or "etx_ff"

    def summary(self) -> str:
        counts_hops = self.metric == "hops"
        return super().summary() + (f", routes by {self.link_quality}" if counts_hops else "")


class OlsrdService(RoutingService):
    protocol = "olsrd"
    section = Olsrd
    executables: ClassVar = (
        Executable(
            "olsrd",
            "Debian has no olsrd: build it from github.com/OLSR/olsrd, with its plug-in jsoninfo"
            " (make install jsoninfo_install) in /usr/lib",
            (_PLUGIN,),
        ),
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
        lines = [
            "DebugLevel 0",
            "IpVersion 4",
            f'LockFile "{place.directory / "olsrd.lock"}"',
            "LinkQualityLevel 2",
            f'LinkQualityAlgorithm "{routing.link_quality}"',
            "LinkQualityFishEye 1",
            f'LoadPlugin "{_PLUGIN}"',
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
