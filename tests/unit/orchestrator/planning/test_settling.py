"""`rove plan` warns where the measurement would begin before costs have settled."""

from typing import Any

import pytest

from orchestrator.planning.settling import settling_warning
from orchestrator.spec.routing import read_protocol
from tests.unit.specs import experiment


@pytest.mark.parametrize(
    ("routing", "seconds"),
    [
        ("olsr", 35.0),  # as captured from olsrd: 100 % after 35 s
        ({"protocol": "olsr", "hello": "2s", "hello_validity": "20s", "tc": "5s"}, 41.0),
        ({"protocol": "olsr", "quality": "etx_float"}, 15.0),
        ({"protocol": "olsr", "metric": "hops"}, 3.0),
        ("olsrd2", 35.0),
        ("babel", 9.0),
        ("aodv", 1.0),
        ("ground_truth", 0.0),
        ("none", 0.0),
    ],
)
def test_every_protocol_says_how_long_its_costs_take_to_settle(routing: Any, seconds: float) -> None:
    found = experiment(backend="netns", routing=routing).routing
    assert found.settles_after() == seconds


def test_a_short_warm_up_is_warned_of_with_the_time_it_needs() -> None:
    warning = settling_warning(experiment(warmup="20s"))
    assert warning is not None
    assert "warm-up of 20 s is shorter than the 35 s" in warning
    assert "olsr (etx_ff)" in warning
    assert "warmup: 35s" in warning


def test_a_warm_up_that_is_long_enough_and_costs_of_another_reader_are_not_warned_of() -> None:
    assert settling_warning(experiment(warmup="35s")) is None
    assert settling_warning(experiment(routing={"protocol": "olsr", "reader": "probe"})) is None
    assert settling_warning(experiment(routing="ground_truth")) is None
    assert read_protocol("none").settles_after() == 0.0
