"""From an experiment's ``routing`` section to the daemon that runs on its nodes."""

from orchestrator.services.aodv import AodvService
from orchestrator.services.babeld import BabeldService
from orchestrator.services.base import RoutingService
from orchestrator.services.olsr import OlsrService
from orchestrator.services.olsrd import OlsrdService
from orchestrator.services.olsrd2 import Olsrd2Service
from orchestrator.spec.routing import AnyRouting, Aodv, Babel, GroundTruth, Olsr, Olsrd, Olsrd2

SERVICES: tuple[type[RoutingService], ...] = (
    OlsrService,
    OlsrdService,
    Olsrd2Service,
    BabeldService,
    AodvService,
)


def service_of(routing: AnyRouting) -> RoutingService | None:
    """None: nothing runs on the nodes, the testbed itself sets routes and tells costs."""
    match routing:
        case Olsr():
            return OlsrService(routing)
        case Olsrd():
            return OlsrdService(routing)
        case Olsrd2():
            return Olsrd2Service(routing)
        case Babel():
            return BabeldService(routing)
        case Aodv():
            return AodvService(routing)
        case GroundTruth():
            return None
