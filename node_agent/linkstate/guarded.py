"""Guards a link-state reader that others wrote: if it fails in any way, the agent only gets no new costs."""

import asyncio
from collections.abc import Awaitable, Mapping

from node_agent.extensions import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.extensions.guard import Failed, Foreign, Guard, guarded, guarded_await
from node_agent.linkstate.base import LINK_STATE_TIMEOUT, LinkStateUnavailable
from node_agent.linkstate.reader import Edge, Edges, LinkStateError, Reader, Reading

WHAT = "link-state reader"
READ_S = LINK_STATE_TIMEOUT - 0.5
"""How long a reader may wait. Less than its callers do: they would not say whose fault it is."""
MOST_COST = 1e9
"""Far more than any path costs; sums of such costs stay finite."""
LONGEST_WORD = 64


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
            reading = await self._read()
        except Failed as failed:
            if isinstance(
                failed.__cause__, LinkStateUnavailable
            ):  # the reader reports it: not its own failure
                raise LinkStateError(failed.error) from failed
            self._guard.failed(failed)
            raise FailedReader(f"{self._foreign.name}: {failed}") from failed
        self._guard.succeeded()
        return reading

    async def _read(self) -> Reading:
        foreign = self._foreign
        reading = guarded(foreign, lambda: _awaitable(self._reader.read()))
        try:
            async with asyncio.timeout(READ_S):
                found = await guarded_await(foreign, reading)
        except TimeoutError:  # any other is a Failed
            raise Failed(foreign.defined, f"read() takes more than {READ_S:g} s") from None
        return guarded(foreign, lambda: checked_reading(found))


def check_reader(reader: object) -> None:
    """Raises ExtensionError if it cannot be read."""
    if not callable(getattr(reader, "read", None)):
        raise ExtensionError(f"{type(reader).__name__} has no method read()")


def _awaitable(found: object) -> Awaitable[object]:
    if not isinstance(found, Awaitable):
        raise ExtensionError(f"read() returns {type(found).__name__} at once: write async def read")
    return found


def checked_reading(found: object) -> Reading:
    """Returns ``found`` as a Reading that its reader cannot change any more.

    Raises ExtensionError if costs cannot be taken from it.
    """
    if not isinstance(found, Reading):
        raise ExtensionError(f"read() returns {type(found).__name__}, not a Reading")
    for word in (found.metric, found.source):
        if not isinstance(word, str) or len(word) > LONGEST_WORD:
            raise ExtensionError(
                f"metric and source of a Reading are text of at most {LONGEST_WORD} characters"
            )
    if not isinstance(found.own_only, bool):
        raise ExtensionError(f"own_only of a Reading is {type(found.own_only).__name__}, not True or False")
    if not _maps_text(found.aliases) or not all(isinstance(main, str) for main in found.aliases.values()):
        raise ExtensionError("aliases of a Reading lead from addresses to addresses")
    if not _maps_text(found.edges) or not all(_maps_text(row) for row in found.edges.values()):
        raise ExtensionError("edges of a Reading lead from address to address to Edge")
    edges: Edges = {
        sender: {receiver: _checked_edge(edge) for receiver, edge in row.items()}
        for sender, row in found.edges.items()
    }
    return found._replace(edges=edges, aliases=dict(found.aliases))


def _maps_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _checked_edge(edge: object) -> Edge:
    if not isinstance(edge, Edge):
        raise ExtensionError(f"edges of a Reading hold {type(edge).__name__}, not Edge")
    cost = _checked_number("cost", edge.cost)
    others = {k: _checked_number(k, v) for k, v in edge._asdict().items() if k != "cost" and v is not None}
    hops = edge.hops if edge.hops is None or isinstance(edge.hops, float) else int(edge.hops)
    return Edge(cost, others.get("delivery"), others.get("latency"), hops)


def _checked_number(name: str, number: object) -> float:
    if not isinstance(number, int | float):
        raise ExtensionError(f"the {name} of an Edge is {type(number).__name__}, not a number")
    try:
        value = float(number)
    except OverflowError:
        raise ExtensionError(f"the {name} of an Edge is more than {MOST_COST:g}") from None
    if not 0 <= value <= MOST_COST:
        raise ExtensionError(f"the {name} of an Edge is {value!r}, not a number from 0 to {MOST_COST:g}")
    return value
