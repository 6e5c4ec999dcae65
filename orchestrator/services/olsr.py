"""Our own OLSR daemon, which speaks olsrd's dialect and answers like it."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from node_agent import olsr
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.overhead import OverheadConfig
from node_agent.olsr import process
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.process import ProcessConfig
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import Module
from orchestrator.spec.routing import Olsr

JSONINFO_PORT = 9090
_CONFIG = "olsr.json"


def olsr_config(routing: Olsr) -> OlsrConfig:
    return OlsrConfig(
        hello_interval=routing.hello,
        hello_validity=routing.hello_validity,
        tc_interval=routing.tc,
        tc_validity=routing.tc_validity,
        mid_interval=routing.tc,
        mid_validity=routing.tc_validity,
        hna_interval=routing.tc,
        hna_validity=routing.tc_validity,
        quality=routing.link_quality,
        fisheye=routing.fisheye,
        longest_validity=2 * max(routing.hello_validity, routing.tc_validity),
    )


class OlsrService(RoutingService):
    protocol = "olsr"
    route_protocol = 83
    modules: ClassVar = (process.__name__, "node_agent.host.kernel_routes")

    def __init__(self, routing: Olsr) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig("olsrd_jsoninfo", metric=self._routing.metric)

    def overhead(self) -> OverheadConfig:
        return OverheadConfig(self.protocol, "127.0.0.1", JSONINFO_PORT)

    def files(self, place: Place) -> Mapping[str, str]:
        config = ProcessConfig(
            interfaces=(place.interface,),
            olsr=olsr_config(self._routing),
            manet=place.manet(self._routing.authentication),
            jsoninfo_port=JSONINFO_PORT,
            seed=place.seed,
        )
        return {_CONFIG: msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"}

    def program(self, place: Place) -> Module:
        return Module(olsr.__name__, str(place.directory / _CONFIG))
