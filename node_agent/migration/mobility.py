"""Where mobiles will be: plans of sources and consumers, which brokers cannot carry out but plan with.

``linear`` knows their last places, ``navigation`` their way, ``surrounding`` what is around their way;
``learned`` (a module of its own) knows what others did. All return Markov chains of leaf brokers.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from node_agent.migration.leaves import Leaves, Span, Spot, square
from node_agent.migration.plan import Expected, MigrationError, Plan, Steps, certain_plan, chain

Seen = tuple[Spot, float]
"""A place and when the mobile was, or will be, there."""
SURE_M = 0.001
"""Half the side of the smallest uncertain place."""


def reckoned(seen: Sequence[Seen], t: float) -> Spot:
    """Where a mobile is that goes on as from the first to the last of its last places."""
    if not seen:
        raise MigrationError("dead reckoning needs a place")
    (before, then), (last, now) = seen[0], seen[-1]
    if now <= then:
        return last
    share = (t - now) / (now - then)
    return last[0] + share * (last[0] - before[0]), last[1] + share * (last[1] - before[1])


def linear(
    seen: Sequence[Seen], leaves: Leaves, steps: Steps, rate: float, error: float, growth: float
) -> Plan:
    """Dead reckoning. The mobile is in a square around its reckoned place whose half side is ``error`` metres
    now and grows by ``growth`` metres a second; each leaf is as likely as its share of the square.

    Who is in a corner of the square stays in that corner while it moves and grows. So a transition from leaf
    to leaf is as likely as the share of the square that is in the one before and in the other after.
    """
    now = seen[-1][1] if seen else 0.0
    views = [_view(leaves, seen, t, error + growth * max(0.0, t - now)) for t in steps.times]
    start = {name: _share(box) for name, box in views[0].items()}
    joints = [
        {
            (a, b): share
            for a, one in before.items()
            for b, other in after.items()
            if (share := _both(one, other))
        }
        for before, after in pairwise(views)
    ]
    return chain(steps, start, joints, rate)


WHOLE = Span(-1.0, -1.0, 1.0, 1.0)


def _view(leaves: Leaves, seen: Sequence[Seen], t: float, half: float) -> dict[str, Span]:
    """The part of the square that each leaf has, in units of the square."""
    (x, y), half = reckoned(seen, t), max(half, SURE_M)
    found = {}
    for name, box in leaves.reach.items():
        part = Span(*((a - b) / half for a, b in zip(box, (x, y, x, y), strict=True))).common(WHOLE)
        if part.x0 < part.x1 and part.y0 < part.y1:
            found[name] = part
    return found


def _share(part: Span) -> float:
    return part.shared(WHOLE) / 4


def _both(one: Span, other: Span) -> float:
    return one.shared(other) / 4


def on_way(route: Sequence[Seen], t: float) -> Spot:
    """Where a mobile is on a known way; before its first and after its last place it stands."""
    index = bisect_right(route, t, key=lambda each: each[1])
    if index in (0, len(route)):
        return route[min(index, len(route) - 1)][0]
    (one, begin), (other, end) = route[index - 1], route[index]
    share = (t - begin) / (end - begin)
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def navigation(route: Sequence[Seen], leaves: Leaves, steps: Steps, rate: float) -> Plan:
    """A known way with estimated times: the leaf brokers are certain, and so is the plan."""
    return certain_plan(steps, [leaves.leaf(on_way(route, t)) for t in steps.times], rate)


def surrounding(spots: Iterable[Spot], half: float, leaves: Leaves, steps: Steps, rate: float) -> Plan:
    """What is around a mobile that will be at ``spots``, step by step: a square is served by all leaves it
    reaches into, and each sends its share of ``rate``. This is the plan of a range query."""
    stages = []
    for spot in spots:
        shares = sorted(leaves.shares(square(spot, half)).items())
        hosts, rates = tuple(name for name, _ in shares), tuple(rate * share for _, share in shares)
        stages.append((Expected(hosts, rates),))
    return Plan(steps, tuple(stages))


def deviates(plan: Plan, t: float, leaf: str, rate: float, tolerance: float) -> bool:
    """Whether a mobile must plan anew: its plan is over or holds its leaf impossible, or it sends at a rate
    that differs from the plan's by more than ``tolerance``, as a share."""
    if t >= plan.steps.end:
        return True
    stage = plan.stages[plan.steps.index(t)]
    planned = [
        sent for each in stage for host, sent in zip(each.hosts, each.rates, strict=True) if host == leaf
    ]
    return not planned or all(abs(each - rate) > tolerance * each for each in planned)
