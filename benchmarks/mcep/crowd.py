"""Vehicles in SUMO's traffic, and what they or the cameras beside the streets see, once a second each."""

import math
from dataclasses import dataclass
from functools import cached_property

from benchmarks.mcep.town import numbered
from node_agent.apps.mcep.geometry import Box, Point, distance
from node_agent.apps.mcep.model import Event, atomic
from node_agent.apps.mcep.sensing import Drive, Sample
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.spec.area import Area

CROWD = "crowd"
"""All vehicles are at the same broker, as in the thesis: one client tells what all of them saw."""
CAMERA_M = 100.0
WARM_UP_S = 20.0
"""Vehicles start from rest; this is left out."""


@dataclass(frozen=True)
class Crowd:
    """``seconds``: how long it is watched."""

    drives: dict[str, Drive]
    area: Box
    seconds: float

    @cached_property
    def readings(self) -> list[Event]:
        """Speeds and changes of lanes, in order of time, with the vehicle as an attribute."""
        found = []
        for number, (name, drive) in enumerate(self.drives.items()):
            phase = (number + 0.5) / len(self.drives)
            for each in drive.readings(1.0, WARM_UP_S + self.seconds, phase):
                if each.t >= WARM_UP_S:
                    found.append((each.t - WARM_UP_S, name, each))
        found.sort(key=lambda each: each[:2])
        return [
            atomic(each.type, t, each.place, number, CROWD, {**each.attributes, "car": name})
            for number, (t, name, each) in enumerate(found)
        ]

    @cached_property
    def pictures(self) -> list[Event]:
        """A vehicle is seen once a second by the camera in whose square it is, where the camera is."""
        found = []
        for each in self.readings:
            if each.type == "speed" and isinstance(each.place, Point):
                x, y = (math.floor(v / CAMERA_M) * CAMERA_M + CAMERA_M / 2 for v in each.place)
                car = {"car": each.attributes["car"]}
                found.append(atomic("picture", each.t, Point(x, y), each.seq, CROWD, car))
        return found

    def place(self, name: str, t: float) -> Point:
        here = self.drives[name].at(WARM_UP_S + t)
        return Point(here.x, here.y)


class Crowds:
    """Those of the figures: on the thesis' area, and as dense as there on a part of it. ``drivers``: how many
    ask, one by one."""

    def __init__(self, seconds: float, drivers: int) -> None:
        self._seconds, self._drivers = seconds, drivers

    @cached_property
    def wide(self) -> Crowd:
        return crowd(1000, 7700.0, 3500.0, self._seconds, 1)

    @cached_property
    def dense(self) -> Crowd:
        return crowd(700, 1900.0, 1900.0, self._seconds, 1)

    def drivers(self, given: Crowd) -> list[str]:
        """Vehicles that are in the middle of the area half-way, so that their interests stay inside."""
        middle = Point(given.area.x1 / 2, given.area.y1 / 2)

        def apart(name: str) -> float:
            return distance(given.place(name, given.seconds / 2), middle)

        return sorted(given.drives, key=apart)[: self._drivers]


def crowd(vehicles: int, width: float, height: float, seconds: float, seed: int) -> Crowd:
    names = numbered(vehicles, "car")
    found = SumoTraffic(model="sumo").drives(names, Area(width, height), seed, WARM_UP_S + seconds)
    drives = {name: Drive([Sample(*each) for each in samples]) for name, samples in found.items()}
    return Crowd(drives, Box(0, 0, width, height), seconds)
