"""Vehicles in SUMO's traffic, and what they or the cameras beside the streets see, once a second each."""

import math
from dataclasses import dataclass
from functools import cached_property

from benchmarks.mcep.figure_files import Figure
from node_agent.apps.mcep.geometry import Box, Point, distance
from node_agent.apps.mcep.model import Event, atomic
from node_agent.apps.mcep.sensing import Drive, Sample
from orchestrator.apps.mcep.planned import section_of
from orchestrator.spec.experiment import Experiment

CROWD = "crowd"
"""All vehicles are at the same broker, as in the thesis: one client tells what all of them saw."""
CAMERA_M = 100.0


@dataclass(frozen=True)
class Crowd:
    """``seconds``: how long it is watched, after ``warmup`` seconds: vehicles start from rest."""

    drives: dict[str, Drive]
    area: Box
    seconds: float
    warmup: float = 20.0

    @cached_property
    def readings(self) -> list[Event]:
        """Speeds and changes of lanes, in order of time, with the vehicle as an attribute."""
        found = []
        for number, (name, drive) in enumerate(self.drives.items()):
            phase = (number + 0.5) / len(self.drives)
            for each in drive.readings(1.0, self.warmup + self.seconds, phase):
                if each.t >= self.warmup:
                    found.append((each.t - self.warmup, name, each))
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
        here = self.drives[name].at(self.warmup + t)
        return Point(here.x, here.y)


class Crowds:
    """Those of figures. ``seconds``: how long they are watched; ``drivers``: how many ask, one by one."""

    def __init__(self, seconds: float | None, drivers: int) -> None:
        self._seconds, self._count = seconds, drivers
        self._made: dict[tuple[str, float, float], Crowd] = {}

    def of(self, figure: Figure) -> Crowd:
        """The vehicles of a figure's file, after its warm-up."""
        experiment = figure.experiment
        seconds = self._seconds or experiment.duration
        key = experiment.topology.name, experiment.warmup, seconds
        if key not in self._made:
            self._made[key] = crowd(experiment, seconds)
        return self._made[key]

    def drivers(self, given: Crowd) -> list[str]:
        """Vehicles that are in the middle of the area half-way, so that their interests stay inside."""
        middle = Point(given.area.x1 / 2, given.area.y1 / 2)

        def apart(name: str) -> float:
            return distance(given.place(name, given.seconds / 2), middle)

        return sorted(given.drives, key=apart)[: self._count]


def crowd(experiment: Experiment, seconds: float) -> Crowd:
    (entry,) = experiment.entries().values()
    brokers, topology = section_of(entry).brokers, experiment.topology
    found = topology.drives(experiment.seed, experiment.warmup + seconds)
    drives = {
        name: Drive([Sample(*each) for each in samples])
        for name, samples in found.items()
        if name not in brokers
    }
    area = Box(0, 0, topology.area.width, topology.area.height)
    return Crowd(drives, area, seconds, experiment.warmup)
