"""Where a query's sources will be: around its focal object, as dead reckoning, its navigation or the ways of
others say. Made at the query's home, for the operators that sources stream to."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.moving.settings import Planning
from node_agent.migration.learned import Habits, Visit, foretell, learn
from node_agent.migration.leaves import Leaves, Span
from node_agent.migration.mobility import on_way, reckoned, surrounding
from node_agent.migration.plan import Plan, Steps

LOOK_BACK_S = 10.0
"""Direction and speed come from so many seconds."""
AHEAD_S = 60.0
"""By how much a broker that tells of a client may be ahead of what its home has heard."""
MOST_VISITS = 1000
"""Of each client that are learned from."""


def leaves_of(boxes: Mapping[str, Box]) -> Leaves:
    return Leaves({name: Span(box.x0, box.y0, box.x1, box.y1) for name, box in boxes.items()})


@dataclass
class Mobile:
    """The focal object as its home sees it. ``half``: half of the edge of a square that holds the region."""

    planning: Planning
    leaves: Leaves
    half: float
    seen: deque[tuple[tuple[float, float], float]] = field(default_factory=deque)
    visits: dict[str, list[Visit]] = field(default_factory=dict)
    """By client, where it was before."""

    def located(self, place: Point, t: float) -> None:
        self.seen.append(((place.x, place.y), t))
        while self.seen[-1][1] - self.seen[0][1] > LOOK_BACK_S and len(self.seen) > 2:
            self.seen.popleft()

    def visited(self, client: str, leaf: str, t: float, now: float) -> None:
        """``now``: about which time it is, if known; visits that are far ahead of it did not happen."""
        way = self.visits.setdefault(client, [])
        if now > -inf:
            while way and way[-1].t > now + AHEAD_S:
                way.pop()
            if t > now + AHEAD_S:
                return
        if not way or (way[-1].leaf != leaf and t > way[-1].t):
            way.append(Visit(leaf, t))
            del way[:-MOST_VISITS]

    @property
    def leaf(self) -> str:
        return self.leaves.leaf(self.seen[-1][0])

    def plan(self, focal: str, steps: Steps, rate: float) -> Plan:
        """``rate``: bytes a second that its sources send, all together."""
        if self.planning.mobiles == "learned":
            way = self.visits.get(focal, [])
            visit = way[-1] if way and way[-1].leaf == self.leaf else Visit(self.leaf, self.seen[-1][1])
            before = way[-2].leaf if len(way) > 1 else ""
            return foretell(self._habits(), before, visit, steps, rate)
        if self.planning.mobiles == "navigation":
            spots = [on_way(self.planning.route, t) for t in steps.times]
        else:
            spots = [reckoned(list(self.seen), t) for t in steps.times]
        return surrounding(spots, self.half, self.leaves, steps, rate)

    def _habits(self) -> Habits:
        return learn(self.visits.values())

    def is_off(self, plan: Plan, now: float) -> bool:
        """Whether it is where its plan holds it impossible, or the plan is over."""
        return now >= plan.steps.end or self.leaf not in plan.hosts_during(now)
