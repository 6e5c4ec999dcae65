"""An analysis that is killed at any moment and started again makes the same tables."""

from pathlib import Path

import pytest

from benchmarks.ingest_kill import campaign
from tests.synthetic_runs import known_run

pytestmark = pytest.mark.timeout(600)


def test_kills_change_no_table(tmp_path: Path) -> None:
    directory = known_run(tmp_path / "runs").write()
    found = campaign(directory, kills=2, seed=1)
    assert (found["kills"], found["differences"], found["leftovers"]) == (2, 0, 0), found
    assert found["tables"] > 10
