"""Reads SUMO's floating car data (``sumo --fcd-output``): where each vehicle is, how fast, and on which lane.

    <timestep time="3.00"><vehicle id="7" x="143.5" y="4.8" speed="13.4" lane="B0A0_0"/></timestep>

Vehicles are taken in the order in which they appear. Before its first sample a vehicle stands where it will
appear, after its last where it was. Persons are not read.
"""

from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path as FilePath
from xml.parsers import expat

from orchestrator.mobility.trace_file import Place, TraceError, named, read_text
from orchestrator.model.trace import Area, Drives, Position, Sample, Trace, Waypoint

MOST_VEHICLES = 1_000_000
LONGEST_NAME = 200


Vehicles = Drives
"""By their names, in order of appearance."""


def read_fcd(file: FilePath, nodes: Sequence[str], area: Area | None = None) -> Trace:
    vehicles = parse_fcd(read_text(file), str(file), area)
    return named([path_of(samples) for samples in vehicles.values()], nodes, str(file))


def parse_fcd(text: str, file: str, area: Area | None = None, shift: Position = (0.0, 0.0)) -> Vehicles:
    """``shift`` is added to all positions before they are checked."""
    reading = _Reading(file, area, shift)
    try:
        reading.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise TraceError(file, error.lineno, f"is not XML: {expat.ErrorString(error.code)}") from None
    if not reading.is_fcd:
        raise TraceError(file, None, "has no <fcd-export>", "write it with sumo --fcd-output FILE")
    return reading.vehicles


class _Reading:
    def __init__(self, file: str, area: Area | None, shift: Position) -> None:
        self.vehicles: Vehicles = {}
        self.is_fcd = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._element
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._file, self._area, self._shift = file, area, shift
        self._t: float | None = None

    def _place(self) -> Place:
        return Place(self._file, self.parser.CurrentLineNumber)

    def _doctype(self, *_: object) -> None:
        raise self._place().error("has a document type, which SUMO never writes")

    def _element(self, name: str, attributes: dict[str, str]) -> None:
        if name == "fcd-export":
            self.is_fcd = True
        elif name == "timestep":
            place = self._place()
            t = place.number(attributes.get("time", ""), "time")
            if t < 0:
                raise place.error(f"time is negative: {t:g} s")
            if self._t is not None and t <= self._t:
                raise place.error(f"time runs backwards: {t:g} s after {self._t:g} s")
            self._t = t
        elif name == "vehicle":
            self._vehicle(attributes)

    def _vehicle(self, attributes: dict[str, str]) -> None:
        vehicle, t = attributes.get("id", ""), self._t
        if t is None:
            raise self._place().error("a vehicle outside of a timestep")
        if not 0 < len(vehicle) <= LONGEST_NAME:
            raise self._place().error(f"a vehicle needs an id of 1 to {LONGEST_NAME} characters")
        x, y = (self._number(attributes, axis) + shift for axis, shift in zip("xy", self._shift, strict=True))
        if self._area is not None and not (0 <= x <= self._area[0] and 0 <= y <= self._area[1]):
            self._place().position(repr(x), repr(y), self._area)
        speed = self._number(attributes, "speed") if "speed" in attributes else 0.0
        samples = self.vehicles.setdefault(vehicle, [])
        if samples and samples[-1].t == t:
            raise self._place().error(f"vehicle {vehicle[:40]!r} is there twice at {t:g} s")
        if len(self.vehicles) > MOST_VEHICLES:
            raise self._place().error(f"more than {MOST_VEHICLES} vehicles")
        samples.append(Sample(t, x, y, speed, attributes.get("lane", "")[:LONGEST_NAME]))

    def _number(self, attributes: dict[str, str], name: str) -> float:
        token = attributes.get(name, "")
        try:
            value = float(token)
        except ValueError:
            value = nan
        return value if isfinite(value) else self._place().number(token, name)


def path_of(samples: Sequence[Sample]) -> tuple[Waypoint, ...]:
    """Leaves out what lies between two samples at the same place: a vehicle may stand for long."""
    kept: list[Waypoint] = []
    for sample in samples:
        here = Waypoint(sample.t, sample.x, sample.y)
        if len(kept) > 1 and kept[-2][1:] == kept[-1][1:] == here[1:]:
            kept[-1] = here
        else:
            kept.append(here)
    return tuple(kept)
