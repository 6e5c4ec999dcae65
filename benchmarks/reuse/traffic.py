"""Queries of some vehicles in SUMO's traffic, and the selections their operators make.

An operator averages speeds in a square around its vehicle, by a counting window. The interest follows the
vehicle every few seconds, each vehicle at its own times; windows begin anew then, without history.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from benchmarks.mcep.crowd import Crowd
from node_agent.apps.mcep.geometry import Box, Point, contains, squares
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.reuse.similarity import Candidate
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import speed_of
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.spec.area import Area

AREA = Area(7700.0, 3500.0)
WARM_UP_S = 20.0
"""Vehicles start from rest; this is left out."""
SWITCH_S = 5.0
SLOW = 12.4
"""Metres a second, about the median; for queries with an operator for slow vehicles and one for fast ones."""


@dataclass(frozen=True)
class Window:
    """Counts ``events`` and moves by ``shift`` of them."""

    events: int = 30
    shift: int = 10


@dataclass(frozen=True)
class Made:
    """A selection with its input. ``at``: when it can be processed."""

    candidate: Candidate
    events: tuple[Event, ...]
    at: float


@dataclass(frozen=True)
class Traffic:
    crowd: Crowd
    seed: int = 1

    @cached_property
    def speeds(self) -> list[Event]:
        return [each for each in self.crowd.readings if each.type == "speed"]

    @cached_property
    def _times(self) -> list[float]:
        return [each.t for each in self.speeds]

    def drivers(self, count: int) -> list[str]:
        """Random vehicles; those of a smaller count are among those of a larger one."""
        names = list(self.crowd.drives)
        random.Random(self.seed).shuffle(names)
        return names[:count]

    def epochs(self, who: str, edge: float) -> Iterator[tuple[float, float, Box]]:
        """From when to when which square is processed."""
        t = -random.Random(f"{self.seed} {who}").uniform(0, SWITCH_S)
        while t < self.crowd.seconds:
            begin, end = max(0.0, t), min(t + SWITCH_S, self.crowd.seconds)
            yield begin, end, squares(edge)(self.crowd.place(who, begin))
            t += SWITCH_S

    def region(self, who: str, edge: float, t: float) -> Box:
        return next(region for begin, end, region in self.epochs(who, edge) if begin <= t < end)

    def between(self, begin: float, end: float) -> list[Event]:
        return self.speeds[bisect_left(self._times, begin) : bisect_left(self._times, end)]

    def selections(
        self,
        who: str,
        edge: float,
        window: Window,
        keep: Callable[[Event], bool] = lambda event: True,
        operator: str | None = None,
    ) -> list[Made]:
        found: list[Made] = []
        for begin, end, region in self.epochs(who, edge):
            stream = [each for each in self.between(begin, end) if keep(each) and _is_in(region, each)]
            for first in range(0, len(stream) - window.events + 1, window.shift):
                events = tuple(stream[first : first + window.events])
                atoms = frozenset().union(*(each.provenance for each in events))
                made = Candidate(
                    operator or who, len(found), events[0].t, events[-1].t, atoms, atoms, 0, region
                )
                found.append(Made(made, events, events[-1].t))
        return found


def _is_in(region: Box, event: Event) -> bool:
    return isinstance(event.place, Point) and contains(region, event.place)


def is_slow(event: Event) -> bool:
    return speed_of(event) < SLOW


def traffic(vehicles: int, seconds: float, seed: int = 1) -> Traffic:
    names = tuple(f"car{number}" for number in range(1, vehicles + 1))
    found = SumoTraffic(model="sumo").drives(names, AREA, seed, WARM_UP_S + seconds)
    drives = {name: Drive([Sample(*each) for each in samples]) for name, samples in found.items()}
    return Traffic(Crowd(drives, Box(0, 0, AREA.width, AREA.height), seconds, WARM_UP_S), seed)
