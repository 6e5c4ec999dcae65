"""A mark for each test; whatever the test did, nothing of that run may be left after it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Mark]:
    mark = Mark(f"test-{os.getpid()}", tmp_path)
    yield mark
    assert network.down(mark) == []
