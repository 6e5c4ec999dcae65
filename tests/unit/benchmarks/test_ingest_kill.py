"""A reading of telemetry that is killed at any moment and started again keeps the same."""

from pathlib import Path

import pytest

from benchmarks.ingest_kill import campaign
from tests.synthetic_runs import small_sweep

pytestmark = pytest.mark.timeout(300)


def test_kills_change_nothing(tmp_path: Path) -> None:
    found = campaign(small_sweep(tmp_path / "runs"), kills=2, seed=1, what="intake")
    assert (found["kills"], found["differences"], found["leftovers"]) == (2, 0, 0), found
    assert found["tables"] > 10
