"""Selections of the thesis' Table 5.1, as the digest restores it, and events to fill others with."""

from collections.abc import Iterable

from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.model import AtomicId, Event, atomic
from node_agent.apps.mcep.reuse.batches import Batch, batch
from node_agent.apps.mcep.reuse.results import Input
from node_agent.apps.mcep.reuse.similarity import Candidate

INTERESTS = {"Q1": {5, 6}, "Q2": {0, 1, 2, 4, 7}, "Q3": {0, 1, 2, 3, 6, 7}}
S1, S2, S3, S4, S5 = {0, 1, 2}, {1, 2, 3}, {1, 2, 4}, {5, 6}, {6, 7}
MUTUAL = {"Q2": {"Q3"}, "Q3": {"Q2"}}
EVERYWHERE = Box(-1e6, -1e6, 1e6, 1e6)


def atoms(numbers: Iterable[int]) -> frozenset[AtomicId]:
    return frozenset(("car", number) for number in numbers)


def selection(operator: str, number: int, numbers: Iterable[int], missing: int = 0) -> Candidate:
    """Of events that occur at the second of their number."""
    every = sorted(numbers)
    return Candidate(operator, number, float(every[0]), float(every[-1]), atoms(every), atoms(every), missing)


def alone(operator: str, number: int, numbers: Iterable[int]) -> Batch:
    return batch([selection(operator, number, numbers)])


def table() -> list[Batch]:
    """s1 and s2 of the third query, s1' and s3 of the second."""
    return [alone("Q3", 1, S1), alone("Q3", 2, S2), alone("Q2", 1, S1), alone("Q2", 2, S3)]


def event(number: int, t: float | None = None, place: Point = Point(0, 0)) -> Event:  # noqa: B008
    return atomic("speed", float(number) if t is None else t, place, number, "car")


def inputs(numbers: Iterable[int]) -> list[Input]:
    return [Input(event(each)) for each in numbers]
