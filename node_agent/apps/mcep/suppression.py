"""Uses again what the last epoch already sent and computed (thesis, section 3.3.3 and Alg. 3.6).

Sources, and operators behind them that look at one event at a time, do not send again what lies in the old
and the new region; the next operator keeps its input and puts it back (``channel.Inlet``). That operator
finds selections that it had before, does not correlate them again, and says by a log which of its old
results stay.

Two errata are built in. A selection is the same only if it has the same events at the same end of the
restriction window, not if it lies within a logged span (E3). A log ends at results that are gone, not only
before new ones (E4).
"""

from collections.abc import Iterator
from typing import NamedTuple

from node_agent.apps.mcep.channel import Log, Message, Omits
from node_agent.apps.mcep.graph import OperatorGraph
from node_agent.apps.mcep.model import Event, EventId, Mark
from node_agent.apps.mcep.windows import Selection, Step

Signature = tuple[float, tuple[tuple[EventId, ...], ...]]


def omits(graph: OperatorGraph, producer: str) -> Omits:
    """What a producer leaves out of the history of a new epoch."""
    if producer not in graph.by_name:
        return "region"
    match graph.by_name[producer].reuse:
        case "contextual":
            return "nothing"
        case "local" if all(omits(graph, each.producer) == "region" for each in graph.inputs[producer]):
            return "region"
        case _:
            return "logs"


class Entry(NamedTuple):
    """A selection and what came of it. ``first``, ``last``: times of its first and last event."""

    step: Step
    outputs: tuple[Event, ...]
    first: float
    last: float


class Reused:
    """The selections of this epoch and the last one. ``keep_s``: how far back the next epoch can begin."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._old: dict[Signature, Entry] = {}
        self.entries: dict[Signature, Entry] = {}

    def find(self, selection: Selection) -> Entry | None:
        """What came of it in the last epoch. The absence of events is not known again: its place is the
        region."""
        return self._old.get(_signature(selection)) if any(selection.windows.values()) else None

    def remember(self, selection: Selection, step: Step, made: list[Event]) -> list[Event]:
        """Returns the outputs; those of the last epoch if they are the same, else those that were made."""
        signature = _signature(selection)
        before = self.find(selection)
        if before and [each.key for each in before.outputs] == [each.key for each in made]:
            epoch = selection.epoch
            made = [each._replace(epoch=epoch) for each in before.outputs]
        events = selection.events
        times = (events[0].t, events[-1].t) if events else (selection.end, selection.end)
        self.entries[signature] = Entry(step, tuple(made), *times)
        while (oldest := next(iter(self.entries)))[0] < selection.end - self._keep_s:
            del self.entries[oldest]
        return made

    def begin(self) -> None:
        self._old, self.entries = self.entries, {}


def _signature(selection: Selection) -> Signature:
    return selection.end, tuple(tuple(each.id for each in events) for events in selection.windows.values())


class Repeats:
    """Replaces runs of old outputs by logs. A run is broken by an output that is new and by one that is
    gone."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._start = float("-inf")
        self._old: dict[EventId, int] = {}
        self._outputs: list[Event] = []
        self._run: tuple[Mark, Mark, int] | None = None
        """First and last of the log to be, and the place of the last one among the old outputs."""

    def add(self, event: Event) -> Iterator[Message]:
        self._outputs.append(event)
        if len(self._outputs) > 64 and self._outputs[len(self._outputs) // 2].t < event.t - self._keep_s:
            self._outputs = [each for each in self._outputs if each.t >= event.t - self._keep_s]
        place = self._old.get(event.id)
        if place is None:
            yield from self.flush()
            yield event
        elif self._run and self._run[2] == place - 1:
            self._run = (self._run[0], event.key, place)
        else:
            yield from self.flush()
            self._run = (event.key, event.key, place)

    def may_say(self, t: float) -> bool:
        """Whether a heartbeat is worth ending a log: once the history is over, since then there are no old
        ones."""
        return self._run is None or t >= self._start

    def flush(self) -> Iterator[Log]:
        if self._run:
            yield Log(self._run[0], self._run[1])
        self._run = None

    def begin(self, start: float) -> None:
        self._start = start
        self._old = {each.id: place for place, each in enumerate(self._outputs)}
        self._outputs = []
