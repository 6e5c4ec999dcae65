"""Our own AODV daemon; packets without a route wait in a TUN device while it looks for one."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from node_agent import aodv
from node_agent.aodv import process
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.process import ProcessConfig
from node_agent.aodv.reader import INFO_PORT
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.overhead import OverheadConfig
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import Module
from orchestrator.spec.routing import Aodv

_CONFIG = "aodv.json"


def aodv_config(routing: Aodv, backend: str) -> AodvConfig:
    return AodvConfig(
        detection=routing.detection_on(backend),
        hello_interval=routing.hello,
        active_route_timeout=routing.active_route,
    )


class AodvService(RoutingService):
    protocol = "aodv"
    route_protocol = 84
    modules: ClassVar = (process.__name__,)

    def __init__(self, routing: Aodv) -> None:
        self._routing = routing

    def link_state(self) -> LinkStateConfig:
        return LinkStateConfig("aodv", metric=self._routing.metric)

    def overhead(self) -> OverheadConfig:
        return OverheadConfig(self.protocol, "127.0.0.1", INFO_PORT)

    def files(self, place: Place) -> Mapping[str, str]:
        config = ProcessConfig(
            interface=place.interface,
            aodv=aodv_config(self._routing, "netns"),
            manet=place.manet(self._routing.authentication),
            seed=place.seed,
        )
        return {_CONFIG: msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"}

    def program(self, place: Place) -> Module:
        return Module(aodv.__name__, str(place.directory / _CONFIG))
