"""What is given to the planner, and what is wrong with it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from node_agent.apps.comet.conjuncts import Conjunct, ConjunctError, conjuncts
from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.patterns import Pattern, event_names, printed
from orchestrator.apps.comet.planning.links import Link, Sizes
from orchestrator.errors import BadInput


class Unplannable(BadInput):
    """There is no plan for a pattern."""


@dataclass(frozen=True)
class Request:
    """A pattern to detect: where detections are needed, and how late they may be, in seconds."""

    name: str
    pattern: Pattern
    sink: str
    tolerance: float


@dataclass(frozen=True)
class World:
    """The links and sources that there are. ``sources``: by the names of their events."""

    links: tuple[Link, ...]
    sources: Mapping[str, EventSource]
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True)
class Task:
    """One alternative of a request's pattern: what a single plan detects."""

    name: str
    conjunct: Conjunct
    sink: str
    tolerance: float


def world(links: Iterable[Link], sources: Iterable[EventSource], sizes: Sizes | None = None) -> World:
    """Raises Unplannable if a link or a source cannot be."""
    by_name: dict[str, EventSource] = {}
    for source in sources:
        if source.name in by_name:
            raise Unplannable(f'the event "{source.name}" has two sources: give each a name of its own')
        if not source.rate > 0 or math.isinf(source.rate):
            problem = f'the event "{source.name}" has a rate of {source.rate:g} per second'
            raise Unplannable(f"{problem}: give a rate above 0, or leave the event out of the pattern")
        if source.length < 0 or not source.begin < source.end:
            raise Unplannable(
                f'the source of the event "{source.name}" ends before it begins: mend its times'
            )
        by_name[source.name] = source
    known = tuple(links)
    for link in known:
        bad = link.edp < 0 or not link.eap > 0 or not link.bandwidth > 0 or link.latency < 0
        if bad or link.a == link.b or (link.cost is not None and link.cost < 0):
            problem = f"the link {link.a} - {link.b} cannot be"
            raise Unplannable(f"{problem}: edp, latency and cost are at least 0, eap and bandwidth above 0")
    return World(known, by_name, sizes or Sizes())


def tasks(request: Request, given: World) -> tuple[Task, ...]:
    """Returns the request's alternatives. Raises Unplannable."""
    for name in event_names(request.pattern):
        if name not in given.sources:
            raise Unplannable(
                f'the pattern "{request.name}" names the event "{name}", which has no source: declare it'
            )
    try:
        alternatives = conjuncts(request.pattern)
    except ConjunctError as error:
        raise Unplannable(f'the pattern "{request.name}": {error}') from error
    possible = [each for each in alternatives if not never_met(each, given.sources)]
    if not possible:
        problem = f'the pattern "{request.name}" can never be met: {printed(request.pattern)}'
        raise Unplannable(f"{problem}: its windows are shorter than the events, or their times never meet")
    names = (
        [request.name] if len(possible) == 1 else [f"{request.name}.{n}" for n in range(1, 1 + len(possible))]
    )
    return tuple(
        Task(name, each, request.sink, request.tolerance) for name, each in zip(names, possible, strict=True)
    )


def never_met(conjunct: Conjunct, sources: Mapping[str, EventSource]) -> bool:
    """Whether no times of the events fulfil the windows and orders.

    The starts of the events and the begin of the run are points in time; windows, orders and times of sources
    bound the differences of two points. The bounds contradict each other exactly if their graph has a cycle
    of negative length (Floyd and Warshall find it).
    """
    names = conjunct.events
    origin = ""
    points = (origin, *names)
    bound = dict.fromkeys(product(points, points), math.inf)

    def limit(earlier: str, later: str, most: float) -> None:
        """Bounds start of ``later`` minus start of ``earlier``."""
        bound[earlier, later] = min(bound[earlier, later], most)

    for name in names:
        source = sources[name]
        limit(origin, name, source.end)
        limit(name, origin, -source.begin)
    for (one, other), window in conjunct.windows.items():
        limit(one, other, window - sources[other].length)
        limit(one, one, window - sources[one].length)
    for first, second in conjunct.before:
        limit(second, first, -sources[first].length)
    for middle, start, end in product(points, points, points):
        through = bound[start, middle] + bound[middle, end]
        bound[start, end] = min(bound[start, end], through)
    return any(bound[point, point] < 0 for point in points)
