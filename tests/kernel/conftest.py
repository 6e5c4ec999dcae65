"""A mark or a run directory for each test; whatever it did, nothing of that run may be left after it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.runs import run_directory
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import run_under_test


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Mark]:
    mark = Mark(f"test-{os.getpid()}", tmp_path)
    yield mark
    assert network.down(mark) == []


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with run_under_test(tmp_path / "runs") as directory:
        yield directory
    for left in run_directory.all_runs(tmp_path / "runs"):
        assert network.down(Mark(left.id, left.path)) == []
