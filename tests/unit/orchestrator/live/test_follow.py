"""A run that is followed from its first event on."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live.follow import RunFollower
from orchestrator.live.run_clock import RunClock
from orchestrator.runs.run_directory import RunDirectory

pytestmark = pytest.mark.unit

T = "2026-03-01T12:00:00.000+00:00"


def write(run: RunDirectory, **event: Any) -> None:
    with run.events.open("a") as file:
        file.write(json.dumps({"t": T, **event}) + "\n")


def test_events_are_read_on_while_the_run_has_not_begun(tmp_path: Path) -> None:
    """Whether it has may depend on an event that comes after others that are waiting."""
    run = RunDirectory(tmp_path)
    write(run, kind="phase", phase="up", state="started")
    write(run, kind="nodes", phase="up", ok=["a"], failed={}, unreachable={})
    follower = RunFollower(run, RunClock())
    follower.poll(lambda: False)
    write(run, kind="phase", phase="converge", state="finished", outcome="ok")
    follower.poll(lambda: False)
    assert [event["kind"] for event in follower.waiting_events()] == ["nodes", "phase"]
    follower.close()
