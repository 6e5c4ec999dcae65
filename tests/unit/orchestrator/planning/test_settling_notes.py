"""Whether a reader is told that costs had not settled when a run was measured."""

from typing import Any

import pytest

from orchestrator.planning.settling import settling_warning, unsettled_note
from orchestrator.spec.experiment import Experiment

FILE: dict[str, Any] = {
    "name": "e",
    "topology": {
        "name": "t",
        "nodes": 4,
        "area": "100 m x 100 m",
        "mobility": {"model": "random_waypoint", "speed": "1 m/s"},
    },
    "query": "synthetic_chain",
    "duration": "60s",
}


def experiment(**changes: Any) -> Experiment:
    return Experiment.model_validate({**FILE, **changes})


def test_a_measurement_that_begins_before_costs_settle_is_noted() -> None:
    note = unsettled_note(experiment(warmup="10s"), None, 14.0)
    assert note is not None and "olsr (etx_ff)" in note and "35 s" in note
    assert unsettled_note(experiment(warmup="10s"), None, 36.0) is None
    assert unsettled_note(experiment(routing="ground_truth"), None, 0.0) is None


def test_costs_that_settled_need_no_note_however_short_that_was() -> None:
    waited = experiment(converge={"settled": "10%"}, warmup="0s")
    assert waited.converge.settled == pytest.approx(0.1)
    assert unsettled_note(waited, 7.0, 8.0) is None
    assert settling_warning(waited) is None
    note = unsettled_note(waited, None, 60.0)
    assert note is not None and "10% within 5 s" in note and "60 s" in note
