"""Decides whether a record can be its writer's: a node is believed only about itself and its own parts.

The directory of a segment says which node wrote it. Each application says which of its parts the node has,
and what each can know. ``Writer`` applies its ``Rule``s, line by line.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from node_agent.telemetry.records import AGENT, RecordFormat

OTHER_RUN, OTHER_NODE, OTHER_APP = "run", "node", "app"
OLD_APP = "query"
"""The application of records that name none: there was only this one."""


class AppScopes(NamedTuple):
    """One application of a run: its kind, and by node what each of its parts there can report about.

    A scope is a struct whose fields are lists of names; ``Rule.among`` names a field.
    """

    kind: str
    scopes: Mapping[str, Mapping[str, Struct]]


class Writer(NamedTuple):
    """The node that a directory of segments belongs to, and its run. ``apps``: those of the run, by name."""

    run: str
    node: str
    format: RecordFormat
    apps: Mapping[str, AppScopes]

    def refusal(self, record: Any) -> str:
        """Returns why ``record`` cannot be this node's; empty if it can."""
        if record.run != self.run:
            return OTHER_RUN
        if record.node != self.node:
            return OTHER_NODE
        owner = self.format.owners.get(record.kind)
        if owner == AGENT:
            return OTHER_APP if record.app and record.app not in self.apps else ""
        app = self.apps.get(record.app or OLD_APP)
        if app is None or owner not in (app.kind, None):
            return OTHER_APP
        subject = self.format.by_app[app.kind].subject
        named = getattr(record, subject) if subject else None
        if named is None:
            return ""
        scope = app.scopes.get(self.node, {}).get(named)
        if scope is None:
            return subject
        for rule in self.format.rules.get(record.kind, ()):
            value = getattr(record, rule.field)
            if value is not None and (value in getattr(scope, rule.among)) != (rule.must == "be"):
                return rule.reason
        return ""


def writers(
    run: str, nodes: Iterable[str], format: RecordFormat, apps: Mapping[str, AppScopes]
) -> dict[str, Writer]:
    """Returns the writers by node."""
    return {node: Writer(run, node, format, apps) for node in nodes}
