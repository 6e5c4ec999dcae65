"""Neighbours and hops over time, from changes of directed links."""

from orchestrator.analytics.connectivity import LinkChange
from orchestrator.analytics.neighbourhood import Moment, moments

PATH: list[LinkChange] = [
    (0, "a", "b", True),
    (0, "b", "z", True),
    (10, "a", "z", True),
    (20, "a", "z", False),
    (20, "a", "b", False),
]


def test_over_time() -> None:
    assert moments(PATH, ["a", "b", "c", "z"], ["a"], ["z"], [0, 9, 10, 20]) == [
        Moment(0, 0.5, 0, 1, 2),
        Moment(9, 0.5, 0, 1, 2),
        Moment(10, 0.75, 0, 2, 1),
        Moment(20, 0.25, 0, 1, None),
    ]


def test_the_farthest_source_counts_and_its_nearest_sink() -> None:
    (found,) = moments(PATH, [], ["a", "b"], ["z", "y"], [5])
    assert found.hops == 2
    (found,) = moments(PATH, [], ["a", "lost"], ["z"], [5])
    assert found.hops is None
    (found,) = moments(PATH, [], ["z"], ["z"], [5])
    assert found.hops == 0


def test_without_links_or_nodes() -> None:
    assert moments([], [], ["a"], ["z"], [0]) == [Moment(0, 0.0, 0, 0, None)]
