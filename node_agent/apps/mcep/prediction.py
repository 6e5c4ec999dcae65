"""Prepares graphs where the focal object will be, so that history is there at the switch (Alg. 3.8 to
3.12)."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from node_agent.apps.mcep.geometry import Point, Region, distance
from node_agent.apps.mcep.interest import Condition, Timed
from node_agent.apps.mcep.model import AtomicId, McepError, Quality, quality

Seen = tuple[Point, float]
"""A place and when the object was there."""


def dead_reckoning(seen: Sequence[Seen], t: float) -> Point:
    """Where an object will be that goes on as between its last two places."""
    (last, now) = seen[-1]
    if len(seen) < 2 or now <= seen[-2][1]:
        return last
    (before, then) = seen[-2]
    share = (t - now) / (now - then)
    return Point(last.x + share * (last.x - before.x), last.y + share * (last.y - before.y))


def on_route(route: Sequence[Seen], t: float) -> Point:
    """Where an object is on a known route, between two of its places by the share of time."""
    index = bisect_right([each[1] for each in route], t)
    if index in (0, len(route)):
        return route[min(index, len(route) - 1)][0]
    (one, begin), (other, end) = route[index - 1], route[index]
    share = (t - begin) / (end - begin)
    return Point(one.x + share * (other.x - one.x), one.y + share * (other.y - one.y))


def next_update(condition: Condition, t: float, switches: Sequence[float]) -> float | None:
    """When the next switch is expected: by the clock, or as often as lately; None if nothing is known."""
    if isinstance(condition, Timed):
        return t + condition.seconds
    if len(switches) < 2:
        return None
    return t + (switches[-1] - switches[0]) / (len(switches) - 1)


def preparation_time(
    rate: float, seconds_per_event: float, profile: Sequence[tuple[float, float]] = ()
) -> float:
    """How long history takes (3.12): events a second in the region times the time for each, put through
    profiled points (that product, seconds it took). Straight lines between them; none: as it is."""
    load = rate * seconds_per_event
    known = sorted(profile)
    if not known:
        return load
    xs = [x for x, _ in known]
    index = min(max(bisect_right(xs, load), 1), len(known) - 1) if len(known) > 1 else 0
    if index == 0:
        return known[0][1] * load / known[0][0] if known[0][0] else known[0][1]
    (x0, y0), (x1, y1) = known[index - 1], known[index]
    return max(0.0, y0 + (load - x0) * (y1 - y0) / (x1 - x0)) if x1 > x0 else max(y0, y1)


def may_use(complete: bool, found: Quality, least: Quality, *, best_effort: bool = False) -> bool:
    """Whether a prepared graph can serve the switch (Alg. 3.9 with E6); else it is a reactive one."""
    enough = found.precision >= least.precision and found.recall >= least.recall
    return enough and (complete or best_effort)


class Candidate(NamedTuple):
    """A possible interest: the recent atomic events in it, and what its graph costs."""

    place: Point
    region: Region
    events: frozenset[AtomicId]
    cost: float


Preference = Literal["greedy", "location", "resource"]
MOST_EAGERNESS, MOST_PLACES = 16, 100


@dataclass(frozen=True, slots=True)
class Prediction:
    """How a query's graphs are prepared.

    ``eagerness``: for how many switches ahead. ``least``: what a prepared graph must reach to be used.
    ``alike``: an interest that reaches more than this for another stands for it; None: ``least``.
    ``ahead``: how many seconds before a switch its graphs begin; None: as long as their history is expected
    to take, by ``seconds_per_event`` and ``profile`` (see ``preparation_time``). ``route``: known places,
    else dead reckoning. ``places``: how many are considered for each switch, up to ``spread`` metres around
    the expected one; of these ``choose_interests`` takes some within ``budget``, in events a second for all
    switches together (with several brokers: in graphs). ``look_back``: over how many seconds events are
    counted. ``tolerance``: metres by which the place of a graph that has begun may be off. ``drawn``: a seed
    by which the places are drawn from all around the expected one; None: evenly spread, and itself.
    """

    eagerness: int = 1
    least: Quality = Quality(0.8, 0.8)  # noqa: RUF009
    alike: Quality | None = None
    ahead: float | None = None
    seconds_per_event: float = 0.005
    profile: tuple[tuple[float, float], ...] = ()
    route: tuple[Seen, ...] = ()
    places: int = 1
    spread: float = 0.0
    budget: float = inf
    preference: Preference = "location"
    look_back: float = 5.0
    tolerance: float = inf
    drawn: int | None = None


def check_prediction(given: Prediction) -> None:
    """Raises ``McepError`` for values without meaning."""
    if not 1 <= given.eagerness <= MOST_EAGERNESS:
        raise McepError(f"prediction needs an eagerness of 1 to {MOST_EAGERNESS}, not {given.eagerness}")
    if not 1 <= given.places <= MOST_PLACES:
        raise McepError(f"prediction considers 1 to {MOST_PLACES} places for a switch, not {given.places}")
    shares = [given.least, given.alike or given.least]
    if not all(0 <= each.precision <= 1 and 0 <= each.recall <= 1 for each in shares):
        raise McepError("what a prepared graph must reach is between 0 and 1")
    amounts = (given.spread, given.budget, given.tolerance, given.seconds_per_event, given.ahead or 0.0)
    if not all(each >= 0 for each in amounts) or not 0 < given.look_back < inf:
        raise McepError("prediction needs times, distances and a budget of 0 or more")
    if any(after[1] <= before[1] for before, after in zip(given.route, given.route[1:], strict=False)):
        raise McepError("the times of a known route must grow")


def choose_interests(
    candidates: Sequence[Candidate], least: Quality, budget: float, preference: Preference = "greedy",
    expected: Point | None = None,
) -> list[Candidate]:  # fmt: skip
    """Which interests to prepare within a budget (Alg. 3.12), none that another one can stand for.

    First those with the most recent events that no chosen one has (Alg. 3.11), the nearest to where the
    object is expected, or the cheapest.
    """
    if preference == "location" and expected is None:
        raise McepError("to choose interests by location, say where the object is expected")
    left = list(candidates)
    uncovered = frozenset().union(*(each.events for each in left))
    chosen: list[Candidate] = []
    spent = 0.0
    while left:
        if preference == "greedy":
            index = max(range(len(left)), key=lambda n: (len(left[n].events & uncovered), -n))
        elif preference == "resource":
            index = min(range(len(left)), key=lambda n: (left[n].cost, n))
        else:
            assert expected is not None
            index = min(range(len(left)), key=lambda n: (distance(left[n].place, expected), n))
        candidate = left.pop(index)
        if any(_stands_for(other, candidate, least) for other in chosen):
            continue
        if spent + candidate.cost <= budget:
            chosen.append(candidate)
            spent += candidate.cost
            uncovered -= candidate.events
    return chosen


def _stands_for(chosen: Candidate, candidate: Candidate, least: Quality) -> bool:
    found = quality(candidate.events, chosen.events)
    return found.precision > least.precision and found.recall > least.recall


def best_for(
    wanted: frozenset[AtomicId], prepared: Mapping[int, frozenset[AtomicId]],
    by: Literal["overlap", "precision", "recall"] = "overlap",
) -> int | None:  # fmt: skip
    """The prepared interest that serves a switch best; None if there is none."""
    if not prepared:
        return None

    def score(name: int) -> tuple[float, int]:
        found = quality(wanted, prepared[name])
        shares = {"precision": found.precision, "recall": found.recall}
        return (shares[by] if by in shares else len(wanted & prepared[name])), -name

    return max(prepared, key=score)


class Deploy(NamedTuple):
    """Prepare a graph for a step: where the object is expected at ``t``, beginning to stream at
    ``begin``."""

    step: int
    place: Point
    t: float
    begin: float
    ready: float
    """When its history will be complete."""

    @property
    def is_timely(self) -> bool:
        return self.ready <= self.t


class Discard(NamedTuple):
    step: int


class Pipeline:
    """Graphs for the next ``eagerness`` switches (Alg. 3.10 with E7; Alg. 3.8 is an eagerness of 1).

    ``predict``: where the object is at a time; ``following``: when the switch after one at a time is
    expected; ``needed``: how long a place's history takes. ``tolerance``: metres by which a prediction may
    be off whose graph has begun; one that has not is simply moved.
    """

    def __init__(
        self, eagerness: int, predict: Callable[[float], Point], following: Callable[[float], float | None],
        needed: Callable[[Point], float], tolerance: float = 0.0,
    ) -> None:  # fmt: skip
        if eagerness < 1:
            raise McepError(f"prediction needs an eagerness of at least 1, not {eagerness}")
        self._eagerness, self._predict, self._following = eagerness, predict, following
        self._needed, self._tolerance = needed, tolerance
        self.step = 0
        self.prepared: dict[int, Deploy] = {}

    def switched(self) -> Deploy | None:
        """The interest switches. Returns what was prepared for this step, which is the caller's now."""
        self.step += 1
        return self.prepared.pop(self.step, None)

    def located(self, t: float) -> list[Deploy | Discard]:
        """Call at each location, after ``switched``. Returns which graphs to prepare and which to drop."""
        found: list[Deploy | Discard] = []
        when: float | None = t
        for step in range(self.step + 1, self.step + self._eagerness + 1):
            when = self._following(when) if when is not None else None
            if when is None:
                return found
            place = self._predict(when)
            known = self.prepared.get(step)
            allowed = self._tolerance if known is not None and known.begin <= t else 0.0
            if known is not None and distance(known.place, place) <= allowed:
                continue
            if known is not None:
                found.append(Discard(step))
            takes = self._needed(place)
            begin = max(t, when - takes)
            self.prepared[step] = Deploy(step, place, when, begin, begin + takes)
            found.append(self.prepared[step])
        return found
