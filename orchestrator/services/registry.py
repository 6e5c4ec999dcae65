"""From an experiment's ``routing`` section to the service that it stands for."""

from orchestrator.errors import BadInput
from orchestrator.services.base import RoutingService
from orchestrator.spec.routing import ROUTING_SERVICES, RoutingSection


def service_kind(protocol: str) -> type[RoutingService]:
    kind = ROUTING_SERVICES[protocol]
    if not issubclass(kind, RoutingService):
        base = f"{RoutingService.__module__}.{RoutingService.__name__}"
        raise BadInput(f"the routing protocol {protocol} is not derived from {base}")
    return kind


def routing_service(routing: RoutingSection) -> RoutingService:
    return service_kind(routing.protocol)(routing)


def service_of(routing: RoutingSection) -> RoutingService | None:
    """None: nothing runs on the nodes, the testbed itself sets routes and gives costs."""
    service = routing_service(routing)
    return service if service.has_daemon else None
