"""How far back each stream must begin at a switch (thesis, Alg. 3.7): basic and approximate points.

The reconfigurator asks which sources changed and sends COLLECT from the roots down. Each operator adds what
its windows need of their input, waits for all its successors, and sends on the largest. Approximate
strategies add what windows are expected to need, which is less than the restriction window; they can lose
results where rates vary.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.graph import CONSUMER, OperatorGraph
from node_agent.apps.mcep.windows import ByEvents, ByTime, Count, Operator, Span, Window

Strategy = Literal["basic", "time_span", "count"]


class Back(NamedTuple):
    """How much history is needed: ``seconds``, and of what is before them the last ``events`` events.

    The thesis' expression ``(S:5)+(N:1)+(S:2)+(N:3)`` is ``Back(7, 4)``: only the sums matter in the end.
    """

    seconds: float = 0.0
    events: int = 0

    def plus(self, other: "Back") -> "Back":
        return Back(self.seconds + other.seconds, self.events + other.events)

    def largest(self, other: "Back") -> "Back":
        return Back(max(self.seconds, other.seconds), max(self.events, other.events))


@dataclass(frozen=True, slots=True)
class Observed:
    """What an operator knows of its input, by stream. ``gaps``: mean seconds between events. ``oldest``:
    the time of the oldest event in its windows, None if there is none. ``reach``: by window, the recent
    maximum of the time from its first event to the end of the restriction window."""

    gaps: Mapping[str, float] = field(default_factory=dict)
    oldest: Mapping[str, float | None] = field(default_factory=dict)
    reach: Mapping[str, float] = field(default_factory=dict)


def additional(operator: Operator, stream: str, strategy: Strategy, observed: Observed) -> Back:
    """What an operator needs of a stream before its own output begins."""
    if strategy == "basic":
        return Back(operator.restriction.length)
    needs = [
        _with_dependencies(operator, window, strategy, observed)
        for window in operator.windows
        if window.stream == stream
    ]
    found = needs[0]
    for each in needs[1:]:
        found = found.largest(each)
    return Back(min(found.seconds, operator.restriction.length), found.events)


def _with_dependencies(operator: Operator, window: Window, strategy: Strategy, observed: Observed) -> Back:
    found = _needed(operator, window, strategy, observed)
    windows = {each.name: each for each in operator.windows}
    for dependency in operator.dependencies:
        if dependency.window == window.name:
            found = found.plus(_with_dependencies(operator, windows[dependency.other], strategy, observed))
    return found


def _needed(operator: Operator, window: Window, strategy: Strategy, observed: Observed) -> Back:
    length = operator.restriction.length
    past = (isinstance(window.shift, ByEvents) and window.shift.events < 0) or (
        isinstance(window.shift, ByTime) and window.shift.seconds < 0
    )
    if window.begin == "oldest" or past:
        return Back(min(length, observed.reach.get(window.name, length)))
    match window.length:
        case Span(seconds):
            return Back(min(length, seconds))
        case Count(events) if strategy == "count":
            return Back(0.0, events)
        case Count(events):
            gap = observed.gaps.get(window.stream)
            return Back(length if gap is None else min(length, events * gap))
        case _:
            return Back(length)


def state_aware(operator: Operator, back: Back, t: float, touched: Iterable[str], observed: Observed) -> Back:
    """Bounds what is needed by what the operator's other inputs hold: nothing can be combined with less."""
    others = set(operator.streams) - set(touched)
    for stream in sorted(others):
        oldest = observed.oldest.get(stream)
        if oldest is None:
            return Back()
        if t - oldest < back.seconds:
            back = Back(t - oldest, 0)
    return back


class Collect(NamedTuple):
    """COLLECT: a successor needs so much history of its input for an epoch that begins at ``t``."""

    epoch: int
    successor: str
    back: Back
    sources: frozenset[str]
    t: float


class Collector:
    """One operator's part. ``aware``: whether what its other inputs hold bounds what is needed."""

    def __init__(
        self, graph: OperatorGraph, name: str, strategy: Strategy = "basic", *, aware: bool = False
    ) -> None:
        self._graph, self._name = graph, name
        self._strategy, self._aware = strategy, aware
        self._epoch = 0
        self._heard: dict[str, Back] = {}

    def receive(
        self, message: Collect, observed: Observed | None = None
    ) -> tuple[Back, list[tuple[str, Collect]]] | None:
        """What is needed of this operator's output, and what to ask of its producers, once all successors
        asked."""
        if message.epoch != self._epoch:
            self._epoch, self._heard = message.epoch, {}
        self._heard[message.successor] = message.back
        streams = self._graph.outputs[self._name]
        if any(stream.successor not in self._heard for stream in streams):
            return None
        back = Back()
        for each in self._heard.values():
            back = back.largest(each)
        operator = self._graph.by_name[self._name]
        seen = observed or Observed()
        below = {each.producer: self._graph.below[each.producer] & message.sources
                 for each in self._graph.inputs[self._name]}  # fmt: skip
        touched = [producer for producer, sources in below.items() if sources]
        asked = []
        for producer in touched:
            needed = back.plus(additional(operator, producer, self._strategy, seen))
            if self._aware:
                needed = state_aware(operator, needed, message.t, touched, seen)
            asked.append((producer, Collect(message.epoch, self._name, needed, below[producer], message.t)))
        return back, asked


def changed_sources(
    graph: OperatorGraph, old: Region, new: Region, start: float, history: float,
    count: Callable[[str, Iterable[Region], float, float], int],
) -> frozenset[str]:  # fmt: skip
    """Sources with events in only one of two regions since their basic point (Lemma 2). ``count`` asks the
    storage for a type, regions that all hold, and a span."""
    found = set()
    for source in graph.sources:
        since = start - history - graph.additional_time(source.name)
        both = count(source.type, [old, new], since, start)
        if any(count(source.type, [region], since, start) != both for region in (old, new)):
            found.add(source.name)
    for operator in graph.operators:
        if operator.reuse == "contextual":
            found |= graph.below[operator.name]  # its results depend on the region itself
    return frozenset(found)


def point_of(back: Back, start: float, basic: float, times: Iterable[float]) -> float:
    """Where a source begins. ``times``: of its last events before ``start - back.seconds``, in the new
    region, as many as are asked for; with fewer of them it begins at its basic point."""
    since = start - back.seconds
    if back.events:
        known = sorted(times)[-back.events :]
        since = known[0] if len(known) == back.events else basic
    return max(since, basic)


def points_of(
    graph: OperatorGraph,
    found: Mapping[str, Back],
    start: float,
    history: float,
    latest: Callable[[str, float, int], list[float]],
) -> dict[str, float]:
    """Δi by producer, after a round of COLLECT. ``latest``: times of a source's last events in the new region
    before a time, at most so many.

    Streams that are not sent anew keep their basic points. An operator of which events are asked, not only
    seconds, begins where the earliest of its sources does: to begin earlier is never wrong (Lemma 1).
    """
    basic = graph.points(start, history)
    points = dict(basic)
    for name in graph.order:
        back = found.get(name)
        if back is None:
            continue
        if name not in graph.by_name:
            points[name] = point_of(back, start, basic[name], latest(name, start - back.seconds, back.events))
        elif back.events:
            points[name] = min(points[source] for source in graph.below[name] if source in found)
        else:
            points[name] = max(basic[name], start - back.seconds)
    return points


def collect_points(
    graph: OperatorGraph,
    epoch: int,
    start: float,
    history: float,
    sources: frozenset[str],
    strategy: Strategy = "basic",
    observed: Mapping[str, Observed] | None = None,
    *,
    aware: bool = False,
) -> dict[str, Back]:
    """What a round of COLLECT gives, by producer; those with no changed source below are not in it."""
    collectors = {each.name: Collector(graph, each.name, strategy, aware=aware) for each in graph.operators}
    waiting = [
        (
            stream.producer,
            Collect(epoch, CONSUMER, Back(history), graph.below[stream.producer] & sources, start),
        )
        for stream in graph.inputs[CONSUMER]
        if graph.below[stream.producer] & sources
    ]
    found: dict[str, Back] = {}
    while waiting:
        name, message = waiting.pop(0)
        if name not in collectors:
            found[name] = found.get(name, Back()).largest(message.back)
            continue
        answer = collectors[name].receive(message, (observed or {}).get(name))
        if answer is not None:
            found[name] = answer[0]
            waiting += answer[1]
    return found
