"""What a vehicle's sensors see on a drive: its speed every now and then, and each change of lanes; and what a
camera sees.

Times come from the drive, not from a clock: the same drive gives the same events on every machine.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from node_agent.apps.mcep.faces import FACE
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import Value
from node_agent.apps.mcep.situations import LANE, SPEED


class Sample(NamedTuple):
    """Where a vehicle is at ``t`` seconds after the beginning, how fast (m/s), and on which lane."""

    t: float
    x: float
    y: float
    speed: float = 0.0
    lane: str = ""


class Reading(NamedTuple):
    """``type``: of the event; empty if there is none, and the client only says where it is."""

    t: float
    type: str
    place: Point
    attributes: dict[str, Value]

    @property
    def is_silent(self) -> bool:
        return not self.type

    def silenced(self) -> "Reading":
        return self._replace(type="", attributes={})


class Drive:
    """A vehicle's way. Between two samples it goes straight; before the first and after the last it
    stands."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        if not samples or any(b.t <= a.t for a, b in pairwise(samples)):
            raise ValueError("a drive needs samples whose times grow")
        self._samples = tuple(samples)
        self._times = [each.t for each in samples]

    @property
    def ends(self) -> float:
        return self._times[-1]

    def at(self, t: float) -> Sample:
        after = bisect_right(self._times, t)
        if after == 0:
            return self._samples[0]._replace(t=t, speed=0.0)
        before = self._samples[after - 1]
        if after == len(self._samples):
            return before._replace(t=t) if t == before.t else before._replace(t=t, speed=0.0)
        share = (t - before.t) / (self._samples[after].t - before.t)
        x = before.x + (self._samples[after].x - before.x) * share
        y = before.y + (self._samples[after].y - before.y) * share
        return Sample(t, x, y, before.speed, before.lane)

    def readings(self, every: float, until: float, phase: float = 0.0) -> Iterator[Reading]:
        """In order of time; at one time a change of lanes comes first. ``phase``: of the first reading of
        the speed, so that not all vehicles read at the same moment."""
        changes = [
            after for before, after in pairwise(self._samples) if _lanes_differ(before.lane, after.lane)
        ]
        number = 0
        while (t := phase + number * every) < until:
            while changes and changes[0].t <= t:
                yield _change(changes.pop(0))
            here = self.at(t)
            yield Reading(t, SPEED, Point(here.x, here.y), {"speed": round(here.speed, 3)})
            number += 1
        yield from (_change(each) for each in changes if each.t < until)


def filmed(
    faces: Mapping[int, Sequence[str]], place: Point, every: float, until: float, phase: float
) -> Iterator[Reading]:
    """What a camera sees. ``faces``: by the number of the picture that it takes, from 0 on."""
    number = 0
    while (t := phase + number * every) < until:
        for features in faces.get(number, ()):
            yield Reading(t, FACE, place, {"picture": number, "features": features})
        if number not in faces:
            yield Reading(t, "", place, {})
        number += 1


def _change(sample: Sample) -> Reading:
    return Reading(sample.t, LANE, Point(sample.x, sample.y), {"lane": sample.lane})


def _lanes_differ(before: str, after: str) -> bool:
    """Whether a vehicle moved to another lane of the same street; ``street_0`` and ``street_1`` are lanes."""
    street, _, lane = before.rpartition("_")
    other, _, now = after.rpartition("_")
    return bool(street) and street == other and lane != now
