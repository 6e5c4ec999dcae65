"""From an experiment's ``routing`` section to the service that it stands for."""

from node_agent.extensions import ExtensionError
from orchestrator.errors import BadInput
from orchestrator.services.base import RoutingService
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.registered import file_of
from orchestrator.spec.routing import ROUTING_SERVICES, RoutingSection


def service_kind(protocol: str) -> type[RoutingService]:
    kind = ROUTING_SERVICES[protocol]
    if not issubclass(kind, RoutingService):
        base = f"{RoutingService.__module__}.{RoutingService.__name__}"
        raise BadInput(f"the routing protocol {protocol} is not derived from {base}")
    return kind


def routing_service(routing: RoutingSection) -> RoutingService:
    """Raises BadInput where a user's service fails."""
    kind = service_kind(routing.protocol)
    try:
        return called(
            f"routing protocol {routing.protocol}", file_of(routing.protocol, kind), lambda: kind(routing)
        )
    except ExtensionError as error:
        raise BadInput(str(error)) from error


def service_of(routing: RoutingSection) -> RoutingService | None:
    """None: nothing runs on the nodes, the testbed itself sets routes and gives costs."""
    service = routing_service(routing)
    return service if service.has_daemon else None
