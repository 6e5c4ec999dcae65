"""Where mobiles go next, learned from what mobiles did before: a graph of leaf brokers (Fig. 4.6).

Of each leaf broker, and of the one before it, the graph knows how likely each next one is and how long
mobiles stayed until then. The one before says in which direction they go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from node_agent.migration.plan import Plan, Steps, chain

MOST_WAYS = 400
"""The likeliest ways are followed, the others are dropped."""
LEAST_STAY_S = 0.1
"""Who was seen to stay shorter is taken to stay so long: a step has only so many turns."""


class Visit(NamedTuple):
    """A mobile is at ``leaf`` since ``t``."""

    leaf: str
    t: float


class Turn(NamedTuple):
    """``before`` is empty if it is not known, or if it does not matter."""

    before: str
    here: str


@dataclass(frozen=True, slots=True)
class Onward:
    """How often mobiles went to ``leaf`` next, and how long they stayed until then, in the mean."""

    leaf: str
    count: int
    stay: float


@dataclass(frozen=True)
class Habits:
    """``turns``: by where mobiles come from and are, where they go."""

    turns: Mapping[Turn, tuple[Onward, ...]] = field(default_factory=dict)

    def onward(self, before: str, here: str) -> tuple[Onward, ...]:
        """What mobiles did that came from there; if none did, what any mobile did."""
        return self.turns.get(Turn(before, here)) or self.turns.get(Turn("", here), ())


def learn(ways: Iterable[Sequence[Visit]]) -> Habits:
    """From leaf brokers that mobiles visited in turn. How long they stay at the first one is not known: they
    may have been there before."""
    stays: dict[Turn, dict[str, list[float]]] = {}
    for way in ways:
        for k, (here, there) in enumerate(pairwise(way)):
            if k == 0:
                continue
            for before in (way[k - 1].leaf, ""):
                stays.setdefault(Turn(before, here.leaf), {}).setdefault(there.leaf, []).append(
                    there.t - here.t
                )
    return Habits(
        {
            turn: tuple(
                Onward(leaf, len(each), sum(each) / len(each)) for leaf, each in sorted(found.items())
            )
            for turn, found in stays.items()
        }
    )


class Way(NamedTuple):
    """A possible way of a mobile: it is ``here``, came from ``before``, and goes to ``to`` at ``leaves``;
    never, if nobody was seen to go on."""

    before: str
    here: str
    to: str | None
    leaves: float


def foretell(habits: Habits, before: str, visit: Visit, steps: Steps, rate: float) -> Plan:
    """The plan of a mobile that is at a leaf broker since some time and came from ``before``; follows the
    graph for as long as ``steps`` last."""
    ways = _spread(habits, before, visit.leaf, visit.t, steps.times[0])
    ways = _advanced(habits, ways, steps.times[0]) if ways else {Way(before, visit.leaf, None, 0.0): 1.0}
    start = _marginal(ways)
    joints = []
    for t in steps.times[1:]:
        joint: dict[tuple[str, str], float] = {}
        after: dict[Way, float] = {}
        for way, chance in ways.items():
            for then, share in _advanced(habits, {way: chance}, t).items():
                joint[way.here, then.here] = joint.get((way.here, then.here), 0.0) + share
                after[then] = after.get(then, 0.0) + share
        joints.append(joint)
        ways = _likeliest(_joined(after))
    return chain(steps, start, joints, rate)


def _spread(habits: Habits, before: str, here: str, since: float, now: float) -> dict[Way, float]:
    """Who is already longer at a leaf than is usual leaves it at once."""
    onward = habits.onward(before, here)
    whole = sum(each.count for each in onward)
    return {
        Way(before, here, each.leaf, max(now, since + each.stay)): each.count / whole for each in onward
    } or {Way(before, here, None, now): 1.0}


def _advanced(habits: Habits, ways: Mapping[Way, float], t: float) -> dict[Way, float]:
    """The ways at ``t``: who leaves before or at that time is at the next leaf, or at one after it."""
    found: dict[Way, float] = {}
    waiting = dict(ways)
    while waiting:
        following: dict[Way, float] = {}
        for way, chance in waiting.items():
            if way.to is None or way.leaves > t or way.to == way.here:
                found[way] = found.get(way, 0.0) + chance
                continue
            for then, share in _spread(
                habits, way.here, way.to, way.leaves, way.leaves + LEAST_STAY_S
            ).items():
                following[then] = following.get(then, 0.0) + chance * share
        waiting = _likeliest(following)
    return found


def _joined(ways: Mapping[Way, float]) -> dict[Way, float]:
    """Ways that differ only in when they go on become one, which goes on at the mean time."""
    sums: dict[tuple[str, str, str | None], tuple[float, float]] = {}
    for way, chance in ways.items():
        whole, time = sums.get(way[:3], (0.0, 0.0))
        sums[way[:3]] = whole + chance, time + chance * way.leaves
    return {Way(*key, time / whole): whole for key, (whole, time) in sums.items()}


def _likeliest(ways: Mapping[Way, float]) -> dict[Way, float]:
    """They get what the others had, each its share of it."""
    if len(ways) <= MOST_WAYS:
        return dict(ways)
    kept = sorted(ways.items(), key=lambda each: (-each[1], str(each[0])))[:MOST_WAYS]
    lost = sum(ways.values()) / sum(chance for _, chance in kept)
    return {way: chance * lost for way, chance in kept}


def _marginal(ways: Mapping[Way, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for way, chance in ways.items():
        found[way.here] = found.get(way.here, 0.0) + chance
    return found
