"""Guards a link-state reader that others wrote: if it fails in any way, the agent only gets no new costs."""

from collections.abc import Iterable, Mapping
from math import inf

from node_agent.extensions import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.extensions.guard import Failed, Foreign, Guard, guarded, guarded_await
from node_agent.linkstate.base import LinkStateUnavailable
from node_agent.linkstate.reader import Edge, LinkStateError, Reader, Reading

WHAT = "link-state reader"


class FailedReader(LinkStateError):
    """A foreign reader failed, or is no longer called because it failed too often."""


class GuardedReader:
    def __init__(self, reader: Reader, foreign: Foreign, failures: Failures) -> None:
        self._reader = reader
        self._foreign = foreign
        self._guard = Guard(foreign, failures)

    async def read(self) -> Reading:
        if self._guard.left_out:
            raise FailedReader(f"{self._foreign.name} failed too often and is left out")
        try:
            found = await guarded_await(self._foreign, self._reader.read())
            reading = guarded(self._foreign, lambda: checked_reading(found))
        except Failed as failed:
            if isinstance(
                failed.__cause__, LinkStateUnavailable
            ):  # the reader reports it: not its own failure
                raise LinkStateError(failed.error) from failed
            self._guard.failed(failed)
            raise FailedReader(f"{self._foreign.name}: {failed}") from failed
        self._guard.succeeded()
        return reading


def checked_reading(found: object) -> Reading:
    """Returns ``found`` as a Reading. Raises ExtensionError if costs cannot be taken from it."""
    if not isinstance(found, Reading):
        raise ExtensionError(f"read() returns {type(found).__name__}, not a Reading")
    if not isinstance(found.metric, str) or not isinstance(found.source, str):
        raise ExtensionError("metric and source of a Reading are text")
    if not _maps_text(found.aliases) or not all(isinstance(main, str) for main in found.aliases.values()):
        raise ExtensionError("aliases of a Reading lead from addresses to addresses")
    if not _maps_text(found.edges) or not all(_maps_text(row) for row in found.edges.values()):
        raise ExtensionError("edges of a Reading lead from address to address to Edge")
    for row in found.edges.values():
        _check_edges(row.values())
    return found


def _maps_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _check_edges(edges: Iterable[object]) -> None:
    for edge in edges:
        if not isinstance(edge, Edge):
            raise ExtensionError(f"edges of a Reading hold {type(edge).__name__}, not Edge")
        numbers = {"cost": edge.cost, **{k: v for k, v in edge._asdict().items() if v is not None}}
        for name, number in numbers.items():
            if not isinstance(number, int | float) or not 0 <= number < inf:
                raise ExtensionError(f"the {name} of an Edge is {number!r}, not a number of at least 0")
