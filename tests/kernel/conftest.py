"""A mark or a run directory for each test; whatever it did, nothing of that run may be left after it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle import run_directory, teardown
from orchestrator.lifecycle.run_directory import RunDirectory
from tests.unit.rove_process import RUN_ID


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Mark]:
    mark = Mark(f"test-{os.getpid()}", tmp_path)
    yield mark
    assert network.down(mark) == []


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    """Where the run under test will be; whatever a failed test leaves is taken down."""
    directory = RunDirectory(tmp_path / "runs" / "line" / RUN_ID)
    yield directory
    for left in run_directory.all_runs(tmp_path / "runs"):
        if teardown.state_of(left) is not teardown.State.FINISHED:
            teardown.tear_down(left, teardown.stop_orchestrator(left, patience=1.0))
        assert network.down(Mark(left.id, left.path)) == []
