"""Neighbours and hops over time, from changes of directed links."""

from orchestrator.analytics.core.connectivity import LinkChange
from orchestrator.analytics.core.neighbourhood import Moment, hops, moments

PATH: list[LinkChange] = [
    (0, "a", "b", True),
    (0, "b", "z", True),
    (10, "a", "z", True),
    (20, "a", "z", False),
    (20, "a", "b", False),
]


def test_over_time() -> None:
    times = [0, 9, 10, 20]
    assert moments(PATH, ["a", "b", "c", "z"], times) == [
        Moment(0, 0.5, 0, 1),
        Moment(9, 0.5, 0, 1),
        Moment(10, 0.75, 0, 2),
        Moment(20, 0.25, 0, 1),
    ]
    assert hops(PATH, ["a"], ["z"], times) == [(0, 2), (9, 2), (10, 1), (20, None)]


def test_the_farthest_source_counts_and_its_nearest_sink() -> None:
    assert hops(PATH, ["a", "b"], ["z", "y"], [5]) == [(5, 2)]
    assert hops(PATH, ["a", "lost"], ["z"], [5]) == [(5, None)]
    assert hops(PATH, ["z"], ["z"], [5]) == [(5, 0)]


def test_without_links_or_nodes() -> None:
    assert moments([], [], [0]) == [Moment(0, 0.0, 0, 0)]
    assert hops([], ["a"], ["z"], [0]) == [(0, None)]
