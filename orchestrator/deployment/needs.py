"""Lists the parts of Python distributions that a node needs for its share of a run."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.planning.application import AppPlan, application
from orchestrator.planning.parts import Part
from orchestrator.services.registry import routing_service
from orchestrator.spec.application import APPLICATIONS
from orchestrator.spec.routing import RoutingSection


@dataclass(frozen=True)
class Needs:
    parts: tuple[Part, ...]


MSGSPEC = Part("msgspec", "msgspec")
UVLOOP = Part("uvloop", "uvloop", required=False)
PYROUTE2 = Part("pyroute2", "node_agent.host.kernel_routes")
AGENT = (MSGSPEC, UVLOOP)


def everything() -> Needs:
    """Returns everything that agents, Rove's routing daemons and its applications may need."""
    own = (part for kind in APPLICATIONS for part in application(kind).parts())
    return Needs(tuple(dict.fromkeys((*AGENT, PYROUTE2, *own))))


def needs_of(plans: Iterable[AppPlan], node: str, routing: RoutingSection) -> Needs:
    """Returns a node's needs. Raises RoveError if an application's own files cannot be read."""
    parts = [*AGENT]
    if routing_service(routing).sets_kernel_routes:
        parts.append(PYROUTE2)
    for plan in plans:
        parts += plan.needs(node)
    return Needs(tuple(dict.fromkeys(parts)))
