"""How badly the events of one selection fit together when they were made for different places (5.3)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from node_agent.apps.mcep.geometry import Point, Region, contains

T = TypeVar("T")


def disparity(atoms: Iterable[T], interests: Iterable[Callable[[T], bool]]) -> float:
    """0 if each atomic event lies in the interest of every operator that produced input of the selection.

    ``interests``: for each of them, whether an atomic event lies in it. Without events or interests it is 0.
    """
    every, tests = list(atoms), list(interests)
    if not every or not tests:
        return 0.0
    hits = sum(is_inside(each) for each in every for is_inside in tests)
    return 1 - hits / (len(every) * len(tests))


def disparity_of_places(places: Iterable[Point], interests: Iterable[Region]) -> float:
    """The same from the places of atomic events. Equal interests count once."""
    return disparity(places, [partial(contains, each) for each in dict.fromkeys(interests)])
