"""Faults in a run's events: as they are written now, and as older runs have them."""

from typing import Any

import pytest

from orchestrator.lifecycle.examination import agent_starts
from orchestrator.runs.events import describe, fault_in
from orchestrator.runs.outages import Outage, outages


@pytest.mark.parametrize("name", ["action", "deed"])
def test_all_readers_understand_runs_of_both_ages(name: str) -> None:
    crash, restart = (
        {"kind": "fault", name: action, "node": "n3", "t_ns": t_ns}
        for action, t_ns in (("crash", 5), ("restart", 9))
    )
    assert fault_in(crash) == ("crash", "n3")
    assert describe(crash) == "fault: crash n3"
    assert outages([crash, restart]) == (Outage("crash", "n3", 5, 9),)
    assert agent_starts([crash, restart]) == {"n3": 2}


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "fault", "node": "n3", "t_ns": 5},
        {"kind": "fault", "action": 7, "node": "n3", "t_ns": 5},
        {"kind": "fault", "action": "crash", "node": None, "t_ns": 5},
        {"kind": "phase", "action": "crash", "node": "n3", "t_ns": 5},
    ],
)
def test_what_is_no_fault_is_none(event: dict[str, Any]) -> None:
    assert fault_in(event) is None
    assert outages([event]) == ()
    assert agent_starts([event]) == {}


def test_a_fault_without_its_time_is_no_outage() -> None:
    assert outages([{"kind": "fault", "action": "crash", "node": "n3", "t_ns": "5"}]) == ()
