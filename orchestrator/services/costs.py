"""Where agents read network costs from: the protocol's own interface, or another link-state reader."""

from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.registry import LINK_STATE_READERS
from orchestrator.services.base import RoutingService
from orchestrator.spec.problems import Finding
from orchestrator.spec.routing import OWN_READER, RoutingSection


def link_state_of(routing: RoutingSection, service: RoutingService | None) -> LinkStateConfig:
    """Returns how agents get costs. ``service``: None if the testbed itself provides them."""
    if routing.reader == OWN_READER:
        return service.link_state() if service is not None else LinkStateConfig()
    return other_link_state(routing)


def other_link_state(routing: RoutingSection) -> LinkStateConfig:
    """Of a reader that is not the protocol's own, in the section's metric if the reader tells that."""
    offered = LINK_STATE_READERS[routing.reader].metrics
    return LinkStateConfig(routing.reader, metric=routing.metric if routing.metric in offered else None)


def reader_findings(routing: RoutingSection, virtual_time: bool) -> list[Finding]:
    """Why the reader cannot be used, at places within the section."""
    if routing.reader == OWN_READER or not virtual_time or not LINK_STATE_READERS[routing.reader].asks:
        return []
    text = f"{routing.reader} asks a program on the node, and none runs there in virtual time"
    return [Finding(("reader",), text, "use backend: netns, or leave the reader out")]
