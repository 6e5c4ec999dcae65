"""A pattern as alternatives of plain conjunctions: the form that nodes match and the planner plans.

``or`` is multiplied out, so that each conjunct needs one instance of every event of a list. What its windows
and orders ask can then be said of pairs of events: the latest end minus the earliest start of a set is at
most w exactly if this holds for each pair, and a part ends before another starts exactly if this holds for
each pair of their events. A node that knows only some of the events checks the pairs it knows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.patterns import And, Event, Not, Or, Pattern, Seq, event_names

MOST_CONJUNCTS = 64

Shape = Event | And | Seq
"""A pattern without ``or`` and negation."""


class ConjunctError(ValueError):
    """A pattern cannot be written as few conjunctions of different events."""


@dataclass(frozen=True)
class Absence:
    """The events that a negated part watches, and where their instances would have to be to matter.

    ``beside``: the events that must occur in the operator that it stands in, whose window is ``window``;
    ``after``, ``before``: those of them that a ``seq`` puts before and behind it. ``slack``: instances so far
    outside that place matter, too, because the negated part holds negations of its own.
    """

    events: tuple[str, ...]
    window: float
    beside: tuple[str, ...]
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    slack: float = 0.0

    @property
    def wait(self) -> float:
        """How long after the last constituent an instance can occur that matters."""
        return self.slack + (0.0 if self.before else self.window)

    def place(self, match: Iterable[Instance]) -> tuple[float, float]:
        """Returns the earliest start and the latest end of instances that matter to a match."""
        spans = {each.event: (each.start, each.end) for each in match}
        low = max(spans[name][1] for name in self.beside) - self.window
        high = min(spans[name][0] for name in self.beside) + self.window
        low = max([low, *(spans[name][1] for name in self.after)])
        high = min([high, *(spans[name][0] for name in self.before)])
        return low - self.slack, high + self.slack


@dataclass(frozen=True)
class Conjunct:
    """One alternative of a pattern. ``shape`` holds the events that must occur; ``absences`` the others."""

    shape: Shape
    absences: tuple[Absence, ...] = ()
    pattern: Pattern | None = None
    """The alternative with its negations."""
    windows: dict[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)
    """Of each pair, both ways round: how far apart start of one and end of the other may be."""
    before: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False, repr=False)
    """Pairs whose first event ends before the second starts."""

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(event_names(self.shape))

    @property
    def absent(self) -> tuple[str, ...]:
        """The events that absences watch, each once."""
        return tuple(dict.fromkeys(name for absence in self.absences for name in absence.events))

    def wait(self, absent: str) -> float:
        """How long after the last constituent an absent event can occur and matter."""
        return max(absence.wait for absence in self.absences if absent in absence.events)

    @property
    def longest(self) -> float:
        """The longest window: no match lasts longer."""
        return max(self.windows.values(), default=0.0)


def conjuncts(pattern: Pattern) -> tuple[Conjunct, ...]:
    """Raises ConjunctError if an event stands twice in one alternative, or if there are too many of them."""
    found = []
    for shape, absences, whole in _alternatives(pattern):
        names = list(event_names(shape))
        twice = next((name for name in names if names.count(name) > 1), None)
        both = next((n for absence in absences for n in absence.events if n in names), None)
        if twice is not None or both is not None:
            text = f'the pattern needs the event "{twice or both}" twice at the same time'
            raise ConjunctError(f"{text}: planning can use each event once; declare it under a second name")
        windows: dict[tuple[str, str], float] = {}
        before: set[tuple[str, str]] = set()
        _constrain(shape, windows, before)
        found.append(Conjunct(shape, absences, whole, windows, frozenset(before)))
    return tuple(found)


def _alternatives(pattern: Pattern) -> list[tuple[Shape, tuple[Absence, ...], Pattern]]:
    match pattern:
        case Event():
            return [(pattern, (), pattern)]
        case Or(parts):
            together = [each for part in parts for each in _alternatives(part)]
            _check(len(together))
            return together
        case Not():
            raise ConjunctError('a negation stands inside "and" or "seq"')
        case And() | Seq():
            kind = type(pattern)
            choices = [_alternatives(part) for part in pattern.parts if not isinstance(part, Not)]
            size = 1
            for each in choices:
                size *= len(each)
                _check(size)
            found: list[tuple[Shape, tuple[Absence, ...], Pattern]] = []
            for combination in product(*choices):
                inner = tuple(absence for _, below, _ in combination for absence in below)
                shapes = tuple(shape for shape, _, _ in combination)
                shape: Shape = kind(shapes, pattern.window) if len(shapes) > 1 else shapes[0]
                wholes = iter([whole for _, _, whole in combination])
                parts = tuple(part if isinstance(part, Not) else next(wholes) for part in pattern.parts)
                own = tuple(_absences(pattern, shapes))
                found.append((shape, inner + own, kind(parts, pattern.window)))
            return found


def _check(number: int) -> None:
    if number > MOST_CONJUNCTS:
        text = f"the pattern has more than {MOST_CONJUNCTS} alternatives"
        raise ConjunctError(f"{text}: use fewer or() inside and() and seq(), or several patterns")


def _absences(pattern: And | Seq, shapes: Sequence[Shape]) -> Iterator[Absence]:
    """``shapes``: of the parts that are not negated."""
    groups = [tuple(event_names(shape)) for shape in shapes]
    beside = tuple(name for group in groups for name in group)
    passed = 0
    for part in pattern.parts:
        if not isinstance(part, Not):
            passed += 1
            continue
        after: tuple[str, ...] = ()
        before: tuple[str, ...] = ()
        if isinstance(pattern, Seq):
            after = tuple(name for group in groups[:passed] for name in group)
            before = tuple(name for group in groups[passed:] for name in group)
        watched = tuple(dict.fromkeys(event_names(part.part)))
        yield Absence(watched, pattern.window, beside, after, before, _slack(part.part))


def _slack(negated: Pattern) -> float:
    """How far from a match of a negated part the instances can be that its own negations watch."""
    match negated:
        case Event():
            return 0.0
        case Or(parts):
            return max(map(_slack, parts))
        case Not(part):
            return _slack(part)
        case _:
            own = negated.window if any(isinstance(part, Not) for part in negated.parts) else 0.0
            return own + max(map(_slack, negated.parts))


def _constrain(shape: Shape, windows: dict[tuple[str, str], float], before: set[tuple[str, str]]) -> None:
    if isinstance(shape, Event):
        return
    groups = [tuple(event_names(part)) for part in shape.parts]
    for place, group in enumerate(groups):
        for other in groups[place + 1 :]:
            for first, second in product(group, other):
                windows[first, second] = windows[second, first] = shape.window
                if isinstance(shape, Seq):
                    before.add((first, second))
    everything = [name for group in groups for name in group]
    for part in shape.parts:
        assert isinstance(part, Event | And | Seq), "alternatives have no or and no negation"
        _constrain(part, windows, before)
    for pair in product(everything, everything):
        if pair in windows:
            windows[pair] = min(windows[pair], shape.window)


def fit(conjunct: Conjunct, one: Instance, other: Instance) -> bool:
    """Whether both can be part of one match, as far as the two of them tell."""
    window = conjunct.windows[one.event, other.event]
    if max(one.end, other.end) - min(one.start, other.start) > window:
        return False
    if (one.event, other.event) in conjunct.before and one.end > other.start:
        return False
    return (other.event, one.event) not in conjunct.before or other.end <= one.start


def matches_with(
    conjunct: Conjunct, anchor: Instance, events: Iterable[str], stored: dict[str, list[Instance]]
) -> Iterator[tuple[Instance, ...]]:
    """Yields the matches of the conjunct, as far as it concerns ``events``, that contain ``anchor``.

    ``stored``: instances by event. ``anchor`` is of one of the events.
    """
    others = [name for name in events if name != anchor.event]
    near = [[each for each in stored.get(name, ()) if fit(conjunct, anchor, each)] for name in others]
    if all(near):
        near.sort(key=len)
        yield from _extended(conjunct, (anchor,), near)


def _extended(
    conjunct: Conjunct, chosen: tuple[Instance, ...], rest: list[list[Instance]]
) -> Iterator[tuple[Instance, ...]]:
    if not rest:
        yield chosen
        return
    for each in rest[0]:
        if all(fit(conjunct, each, other) for other in chosen[1:]):
            yield from _extended(conjunct, (*chosen, each), rest[1:])
