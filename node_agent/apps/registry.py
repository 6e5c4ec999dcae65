"""Lists the kinds of applications: Rove's own, and those of installed packages."""

from node_agent.apps.base import AppKind
from node_agent.extensions import ExtensionError, Registry


def _checked(name: str, value: object) -> AppKind:
    if not isinstance(value, AppKind):
        raise ExtensionError(f"the application {name!r} is a {type(value).__name__}, and not an AppKind")
    return value


BUILT_IN = {
    "query": "node_agent.apps.dataflow.application:QUERY",
    "flows": "node_agent.apps.flows.application:FLOWS",
    "detect": "node_agent.apps.comet.application:DETECT",
    "interest": "node_agent.apps.mcep.application:INTEREST",
}
APPLICATIONS: Registry[AppKind] = Registry("application", "rove.applications", _checked, BUILT_IN)
