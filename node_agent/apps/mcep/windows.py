"""What an operator's programmer declares: windows, their dependencies, predicates, consumption, partitions.

The programming model of the thesis (section 3.2.2) as values; ``selection`` says what they mean.

    pairs = Operator(
        "sum",
        windows=(
        Window("a", "A", Count(1), ByEvents(1), "oldest"), Window("b", "B", Count(1), ByEvents(1), "oldest"),
    ),
        restriction=RestrictionWindow(4.0),
        correlate=lambda selection: Step((Output("sum", {"sum": 8}),)),
        when=Both((AtLeast("a", 1), AtLeast("b", 1))),
        consumption=Consume("all"),
    )
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Literal, NamedTuple

from node_agent.apps.mcep.geometry import Place, Point, Region
from node_agent.apps.mcep.model import Event, EventId, Value


@dataclass(frozen=True, slots=True)
class Count:
    """At most ``events`` successive events."""

    events: int


@dataclass(frozen=True, slots=True)
class Span:
    """Events whose times differ by less than ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Open:
    """From a fixed beginning to the event at which the operator (``Operator.ends``) ends it."""


@dataclass(frozen=True, slots=True)
class ByEvents:
    """By so many events that are not consumed; below 0 into the past."""

    events: int = 1


@dataclass(frozen=True, slots=True)
class ByTime:
    """By so many seconds, as often as it takes to reach a new event; below 0 into the past."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ToNewest:
    pass


@dataclass(frozen=True, slots=True)
class ToOldest:
    """To the oldest event that is not consumed."""


@dataclass(frozen=True, slots=True)
class Stay:
    pass


@dataclass(frozen=True, slots=True)
class Window:
    """A selection window on an input stream. ``begin``: at which end of the restriction window it begins;
    its first event is its position if it began at the oldest, its last one if at the newest."""

    name: str
    stream: str
    length: Count | Span | Open
    shift: ByEvents | ByTime | ToNewest | ToOldest | Stay = Stay()
    begin: Literal["newest", "oldest"] = "newest"


Edge = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """``point`` of ``window`` must be ``relation`` to ``other_point`` of ``other``; if not, ``window``
    gives way."""

    window: str
    point: Edge
    relation: Literal["<", "<=", ">", ">="]
    other: str
    other_point: Edge


@dataclass(frozen=True, slots=True)
class RestrictionWindow:
    """The seconds within which all selected events lie. Moves to the next event (of ``stream``, else of
    any), or by time."""

    length: float
    shift: ByEvents | ByTime = ByEvents(1)
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class AtLeast:
    window: str
    events: int


@dataclass(frozen=True, slots=True)
class Exactly:
    """``Exactly(window, 0)`` is negation."""

    window: str
    events: int


@dataclass(frozen=True, slots=True)
class Full:
    """A counting window has all its events."""

    window: str


@dataclass(frozen=True, slots=True)
class Both:
    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple["Predicate", ...]


Predicate = AtLeast | Exactly | Full | Both | Either
ALWAYS = Both(())


@dataclass(frozen=True, slots=True)
class Consume:
    """What no later selection gets again: of the selected events none, all, the ``events`` first or last of
    each window, or what the operator names in its ``Step``."""

    what: Literal["none", "all", "first", "last", "named"] = "none"
    events: int = 1


class Output(NamedTuple):
    """An event to be. ``place``: if it is not the box around the selected events."""

    type: str
    attributes: Mapping[str, Value]
    place: Place | None = None


class Step(NamedTuple):
    """What a correlation step gives. ``consumed``: events by id, and all before a time, for
    ``Consume("named")``. ``finished``: nothing more can be found in this restriction window."""

    outputs: tuple[Output, ...] = ()
    consumed: frozenset[EventId] = frozenset()
    consumed_before: float = -math.inf
    finished: bool = False


class Selection(NamedTuple):
    """What one correlation step sees: events by window, in order."""

    windows: Mapping[str, tuple[Event, ...]]
    end: float
    """Of the restriction window."""
    epoch: int
    region: Region | None

    @property
    def events(self) -> list[Event]:
        """Each once, in order."""
        found = {each.key: each for events in self.windows.values() for each in events}
        return sorted(found.values(), key=_key)


def _key(event: Event) -> tuple[float | int | str, ...]:
    return event[:3]


@dataclass(frozen=True, slots=True)
class Partition:
    """Splits an operator's input: by its source, by an attribute, or by squares of ``cell`` metres."""

    by: Literal["source", "attribute", "region"]
    attribute: str = ""
    cell: float = 0.0

    def part_of(self, event: Event) -> Value | tuple[int, int]:
        if self.by == "source":
            return event.source.partition(" ")[0]  # of what an operator made of it: the sensor comes first
        if self.by == "attribute":
            return event.attributes.get(self.attribute, "")
        x, y = event.place if isinstance(event.place, Point) else (event.place.x0, event.place.y0)
        return math.floor(x / self.cell), math.floor(y / self.cell)


Reuse = Literal["local", "independent", "contextual"]


@dataclass(frozen=True, slots=True)
class Operator:
    """``correlate`` is pure: what it gives depends on the selection alone. It is called once for each
    selection that is complete and for which ``when`` holds. ``ends``: whether an ``Open`` window ends with
    the last of these events. ``reuse``: ``local`` if it looks at one event at a time, ``contextual`` if it
    looks at the epoch or the region, and so has nothing to use again.
    """

    name: str
    windows: tuple[Window, ...]
    restriction: RestrictionWindow
    correlate: Callable[[Selection], Step]
    when: Predicate = ALWAYS
    dependencies: tuple[Dependency, ...] = ()
    consumption: Consume = Consume()
    partition: Partition | None = None
    ends: Callable[[tuple[Event, ...]], bool] | None = None
    reuse: Reuse = "independent"

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(window.stream for window in self.windows))


def dependency_order(operator: Operator) -> tuple[str, ...]:
    """Names of windows, each after those it depends on. Raises ``CycleError``."""
    needs: dict[str, list[str]] = {window.name: [] for window in operator.windows}
    for each in operator.dependencies:
        needs[each.window].append(each.other)
    return tuple(TopologicalSorter(needs).static_order())


def holds(predicate: Predicate, counts: Mapping[str, int], full: Mapping[str, int]) -> bool:
    """``counts``: events by window; ``full``: how many counting windows take."""
    match predicate:
        case AtLeast(window, events):
            return counts[window] >= events
        case Exactly(window, events):
            return counts[window] == events
        case Full(window):
            return counts[window] == full[window]
        case Both(parts):
            return all(holds(each, counts, full) for each in parts)
        case Either(parts):
            return any(holds(each, counts, full) for each in parts)


def filter_operator(
    name: str, stream: str, keep: Callable[[Event], bool], type: str, length: float = 0.0
) -> Operator:
    """Passes the events that ``keep`` accepts, one by one."""

    def correlate(selection: Selection) -> Step:
        return Step(
            tuple(Output(type, each.attributes, each.place) for each in selection.events if keep(each))
        )

    return Operator(
        name,
        (Window("each", stream, Count(1), ByEvents(1), "oldest"),),
        RestrictionWindow(length),
        correlate,
        AtLeast("each", 1),
        consumption=Consume("all"),
        reuse="local",
    )
