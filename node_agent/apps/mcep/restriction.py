"""Where the restriction window of an operator goes: from event to event, or by time (thesis, Alg. 3.2)."""

from collections import deque
from typing import Self

from node_agent.apps.mcep.model import Event, Mark, just_after
from node_agent.apps.mcep.selection import Events, Restricted
from node_agent.apps.mcep.standing import PartStanding
from node_agent.apps.mcep.windows import ByTime, Operator


class Part:
    """The buffers and the restriction window of an operator, or of one of its partitions, in one epoch."""

    def __init__(self, operator: Operator, begin: float) -> None:
        self._restriction = operator.restriction
        self.buffers: dict[str, Events] = {stream: [] for stream in operator.streams}
        self.begun = False
        self.end: Mark = just_after(begin)
        self.end_t = begin
        self._ahead: deque[tuple[Mark, float]] = deque()
        """Events behind the restriction window's end by which it moves."""

    @classmethod
    def resumed(cls, operator: Operator, standing: PartStanding) -> Self:
        """As it stood on another machine."""
        part = cls(operator, standing.end_t)
        part.begun, part.end = standing.begun, standing.end
        moved_by = part._restriction.stream
        behind: list[Event] = []
        for stream, events in standing.buffers.items():
            part.buffers[stream] = list(events)
            if moved_by in (None, stream):
                behind += [each for each in events if each.key > part.end]
        part._ahead.extend((each.key, each.t) for each in sorted(behind, key=_key))
        return part

    def add(self, stream: str, event: Event) -> None:
        self.buffers[stream].append(event)
        if self._restriction.stream in (None, stream) and event.key > self.end:
            self._ahead.append((event.key, event.t))

    def skip_to(self, t: float) -> None:
        """Begins with the first event, at ``t``: there was nothing before it."""
        self.begun = True
        shift = self._restriction.shift
        if isinstance(shift, ByTime):
            while self.end_t + shift.seconds < t:
                self.end_t += shift.seconds
            self.end = just_after(self.end_t)

    def next_end(self, known_to: Mark, before: float) -> tuple[Mark, float] | None:
        """Where the restriction window ends next, if all events up to there are known. ``before``: the
        epoch's end."""
        if not self.begun:
            return (self.end, self.end_t) if known_to > self.end else None
        shift = self._restriction.shift
        if isinstance(shift, ByTime):
            t = self.end_t + shift.seconds
            return (just_after(t), t) if known_to > just_after(t) and t < before else None
        return self._ahead[shift.events - 1] if len(self._ahead) >= shift.events else None

    def move(self, end: tuple[Mark, float]) -> Restricted:
        self.begun = True
        self.end, self.end_t = end
        start = self.end_t - self._restriction.length
        while self._ahead and self._ahead[0][0] <= self.end:
            self._ahead.popleft()
        for stream, events in self.buffers.items():
            if events and events[0].t < start:
                first = next((n for n, each in enumerate(events) if each.t >= start), len(events))
                self.buffers[stream] = events[first:]
        return Restricted(start, self.end, self.end_t)


def _key(event: Event) -> Mark:
    return event.key
