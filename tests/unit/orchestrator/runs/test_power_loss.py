"""A power cut forgets what was not synced (``benchmarks/drilling``): what a run said before still holds."""

from pathlib import Path
from random import Random

import pytest

from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import VERDICT, Moment
from benchmarks.drilling.power_loss import lose_power


@pytest.mark.timeout(120)
@pytest.mark.parametrize("torn", [None, Random(1)], ids=["strictly", "torn"])
@pytest.mark.parametrize("moment", [None, VERDICT, Moment("measure")], ids=str)
def test_a_verdict_outlives_the_power_only_with_its_records(
    tmp_path: Path, moment: Moment | None, torn: Random | None
) -> None:
    drill = Drill("power_loss", 0, Random(1), tmp_path / "drill")
    try:
        lose_power(drill, moment, "sim", torn)
    finally:
        drill.close()
    assert drill.found.clean, drill.found
