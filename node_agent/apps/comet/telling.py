"""When a node tells a neighbour how complete streams are."""

import math

from node_agent.apps.comet.machine import Machine
from node_agent.apps.comet.messages import NOTHING, Marks
from node_agent.apps.comet.node_plan import MARKS_S, MOMENT, OTHER_MARKS_S, Stream


class Teller:
    """For one contact with one neighbour: marks are due when it begins, then now and then."""

    def __init__(self, machine: Machine, neighbour: str) -> None:
        self._machine = machine
        self._neighbour = neighbour
        node = machine.plan.node
        self._absent = [s for s in machine.plan.streams if s.absent and s.after(node) == neighbour]
        self._told: Marks | None = None
        self._at = -math.inf

    def due(self, now: float) -> float:
        """When marks are to be told next, if nothing else happens; ``now`` or earlier: at once."""
        if self._told is None:
            return now
        moments = [self._at + OTHER_MARKS_S]
        moments += [self._absent_due(stream, self._told, now) for stream in self._absent]
        return min(moments)

    def _absent_due(self, stream: Stream, told: Marks, now: float) -> float:
        machine = self._machine
        mark = told.up.get(stream.number, NOTHING)
        if stream.origin != machine.plan.node:
            return now if machine.state.marks.get(stream.number, NOTHING) != mark else math.inf
        if not stream.pulled:
            return self._at + MARKS_S
        outlet = machine.state.outlets[stream.number]
        if outlet.asks > mark.asks:
            return now
        ends = [high for _, bounds in outlet.asked.asked for _, high in bounds.values() if high >= mark.seen]
        return max(min(ends, default=math.inf) + MOMENT, self._at + MOMENT)

    def told(self, now: float) -> Marks:
        """The marks to be told now, after everything that waits."""
        self._told, self._at = self._machine.marks_for(self._neighbour, now), now
        return self._told
