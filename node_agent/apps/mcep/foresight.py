"""Which interests of a query to prepare, and when (thesis, Alg. 3.8, 3.10 and 3.12).

Knows where the focal object was, expects where it will be at its next switches, and chooses regions around
there. Says which graphs are due; runs none itself.
"""

import math
import random
from collections import deque
from collections.abc import Callable

from node_agent.apps.mcep.geometry import Point, Region
from node_agent.apps.mcep.interest import Condition
from node_agent.apps.mcep.prediction import (
    Candidate,
    Deploy,
    Discard,
    Pipeline,
    Prediction,
    Seen,
    choose_interests,
    dead_reckoning,
    next_update,
    on_route,
    preparation_time,
)
from node_agent.apps.mcep.sight import Sight

REMEMBERED = 8
"""Switches by which the time of the next one is expected."""
GOLDEN = math.pi * (3 - math.sqrt(5))


def around(place: Point, places: int, spread: float) -> list[Point]:
    """Places evenly spread over a disc, the middle first."""
    found = [place]
    for number in range(1, places):
        radius, angle = spread * math.sqrt(number / (places - 1)), number * GOLDEN
        found.append(Point(place.x + radius * math.cos(angle), place.y + radius * math.sin(angle)))
    return found


def drawn_around(place: Point, places: int, spread: float, seed: str) -> list[Point]:
    """Places drawn from a disc, each with the same probability."""
    draw = random.Random(seed)
    polar = [(spread * math.sqrt(draw.random()), draw.uniform(0, 2 * math.pi)) for _ in range(places)]
    return [Point(place.x + r * math.cos(a), place.y + r * math.sin(a)) for r, a in polar]


class Foresight:
    """``history``: seconds of events that a new graph must process."""

    def __init__(
        self,
        prediction: Prediction,
        condition: Condition,
        interest: Callable[[Point], Region],
        sight: Sight,
        history: float,
    ) -> None:
        self.prediction = prediction
        self._condition, self._interest, self._sight, self._history = condition, interest, sight, history
        self._seen: deque[Seen] = deque(maxlen=2)
        self._switches: deque[float] = deque(maxlen=REMEMBERED)
        self._now = -math.inf
        self._begun: set[int] = set()
        """Steps whose graphs have begun."""
        self._pipeline = Pipeline(
            prediction.eagerness, self._predict, self._following, self._needed, prediction.tolerance
        )

    @property
    def step(self) -> int:
        """The number of switches so far."""
        return self._pipeline.step

    def switched(self, t: float) -> int:
        """The interest switches. Returns the step whose graphs were prepared for this."""
        self._switches.append(t)
        self._pipeline.switched()
        self._begun.discard(self._pipeline.step)
        return self._pipeline.step

    def located(self, place: Point, t: float) -> list[int]:
        """Call at each location, after ``switched``. Returns the steps whose graphs are to be given up."""
        if not self._seen or t > self._seen[-1][1]:
            self._seen.append((place, t))
        self._now = t
        gone = [each.step for each in self._pipeline.located(t) if isinstance(each, Discard)]
        self._begun.difference_update(gone)
        return gone

    def due(self, now: float) -> list[tuple[int, float, list[Candidate]]]:
        """The steps whose graphs begin, when, and their interests. ``now`` is what clients say: none of
        them can make graphs begin after their switch."""
        steps = [
            (step, deploy)
            for step, deploy in sorted(self._pipeline.prepared.items())
            if deploy.begin <= now and step not in self._begun
        ]
        self._begun.update(step for step, _ in steps)
        return [
            (step, min(now, deploy.t), self._chosen(deploy, min(now, deploy.t))) for step, deploy in steps
        ]

    def _chosen(self, deploy: Deploy, now: float) -> list[Candidate]:
        given = self.prediction
        candidates = []
        for place in self._considered(deploy):
            region = self._interest(place)
            cost = self._sight.rate(region, now)
            candidates.append(Candidate(place, region, self._sight.events(region, now), cost))
        budget = given.budget / given.eagerness  # each of the next switches gets the same share
        alike = given.alike or given.least
        return choose_interests(candidates, alike, budget, given.preference, deploy.place)

    def _considered(self, deploy: Deploy) -> list[Point]:
        given = self.prediction
        if given.drawn is None:
            return around(deploy.place, given.places, given.spread)
        return drawn_around(deploy.place, given.places, given.spread, f"{given.drawn}/{deploy.step}")

    def _predict(self, t: float) -> Point:
        route = self.prediction.route
        return on_route(route, t) if route else dead_reckoning(list(self._seen), t)

    def _following(self, t: float) -> float | None:
        """When the first switch after ``t`` is expected."""
        last = self._switches[-1]
        coming = next_update(self._condition, last, list(self._switches))
        if coming is None or not coming > last:
            return None
        every = coming - last
        return last + every * (math.floor((t - last) / every) + 1)

    def _needed(self, place: Point) -> float:
        given = self.prediction
        if given.ahead is not None:
            return given.ahead
        rate = self._sight.rate(self._interest(place), self._now)
        profile = given.profile or ((0.0, 0.0), (1.0, self._history))
        return preparation_time(rate, given.seconds_per_event, profile)
