"""The records of all kinds of applications that there are."""

from functools import cache

from node_agent.apps.registry import APPLICATIONS
from node_agent.telemetry.records import RecordFormat


def record_format() -> RecordFormat:
    """Of the agent and all registered kinds of applications. Raises ExtensionError."""
    return _format(APPLICATIONS.names())


@cache
def _format(kinds: tuple[str, ...]) -> RecordFormat:
    return RecordFormat({kind: APPLICATIONS[kind].records for kind in kinds})
