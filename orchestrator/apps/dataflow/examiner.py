"""Examines the records of one dataflow: which node can have written them, and deliveries nobody emitted."""

from collections.abc import Mapping
from typing import Any

from node_agent.apps.dataflow.belief import scopes_of
from node_agent.apps.dataflow.events import TupleDelivered, TupleEmitted
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.model.intervals import Intervals
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.segments import Completeness
from orchestrator.planning.application import Examiner

_EMITTED, _DELIVERED = tag_of(TupleEmitted), tag_of(TupleDelivered)
MOST_SPANS = 16_384

Streams = dict[str, Intervals]
"""By origin, the positions of tuples."""


class DataflowExaminer(Examiner):
    """Keeps the streams of every node in bounded memory.

    Where a stream has more than ``MOST_SPANS`` gaps, the lowest are closed: deliveries of what nobody emitted
    are still found, since whoever makes a stream leaves no gaps in it.
    """

    def __init__(self, plan: DeploymentPlan) -> None:
        super().__init__(scopes_of(plan))
        self._plan = plan
        self._emitted: dict[str, Streams] = {}
        self._delivered: dict[str, Streams] = {}

    def take(self, node: str, record: Any) -> None:
        if record.kind == _EMITTED:
            streams = self._emitted.setdefault(node, {})
        elif record.kind == _DELIVERED:
            streams = self._delivered.setdefault(node, {})
        else:
            return
        positions = streams.get(record.origin)
        if positions is None:
            positions = streams[record.origin] = Intervals()
        positions.add(record.tau, record.tau + (record.tuples or 1) - 1)
        if len(positions) > MOST_SPANS:
            positions.fill(MOST_SPANS // 2)

    def never_emitted(self, completeness: Mapping[str, Completeness]) -> dict[str, int]:
        """Counts only streams whose makers all have complete logs: a maker that died may not have recorded
        all."""
        makers: dict[str, list[str]] = {}
        for replica in self._plan.replicas:
            for origin in self._plan.query.makes(replica.operator):
                makers.setdefault(origin, []).append(replica.node)
        emitted: dict[str, list[Intervals]] = {}
        for streams in self._emitted.values():
            for origin, positions in streams.items():
                emitted.setdefault(origin, []).append(positions)
        counts: dict[str, int] = {}
        for node, streams in self._delivered.items():
            for origin, delivered in streams.items():
                if not all(
                    maker in completeness and completeness[maker].complete for maker in makers[origin]
                ):
                    continue
                for first, last in (span for known in emitted.get(origin, ()) for span in known):
                    delivered.discard(first, last)
                if beyond := sum(last - first + 1 for first, last in delivered):
                    counts[node] = counts.get(node, 0) + beyond
        return counts
