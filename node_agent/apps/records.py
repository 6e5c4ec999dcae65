"""The format of the records of all registered kinds of applications."""

from functools import cache

from node_agent.apps.registry import APPLICATIONS
from node_agent.telemetry.records import RecordFormat


def record_format() -> RecordFormat:
    """Returns the format of records of the agent and of all registered applications. Raises
    ExtensionError.
    """
    return _format(APPLICATIONS.names())


@cache
def _format(kinds: tuple[str, ...]) -> RecordFormat:
    return RecordFormat({kind: APPLICATIONS[kind].records for kind in kinds})
