"""Whose numbers may enter a mean."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.results.inputs import RunInput
from orchestrator.runs.run_directory import RunDirectory

SOUND = [{"phase": "measure", "outcome": "ok"}, {"phase": "down", "outcome": "ok"}]
BROKE = [{"phase": "measure", "outcome": "ok"}, {"phase": "down", "outcome": "broke"}]
UNMET = [{"expect": "throughput_fps > 1", "holds": False}]


@pytest.mark.parametrize(
    ("verdict", "usable"),
    [
        ({"verdict": "valid", "phases": SOUND}, True),
        ({"verdict": "failed", "phases": SOUND, "expectations": UNMET}, True),
        ({"verdict": "failed", "phases": BROKE, "expectations": UNMET}, False),
        ({"verdict": "failed", "phases": SOUND, "expectations": []}, False),
        ({"verdict": "failed", "phases": [], "expectations": UNMET}, False),
        ({"verdict": "invalid", "phases": SOUND, "expectations": UNMET}, False),
        ({"verdict": None}, False),
        ({}, False),  # killed, or not at its end yet
    ],
)
def test_only_runs_that_were_judged_and_went_well_are_usable(verdict: dict[str, Any], usable: bool) -> None:
    assert RunInput(RunDirectory(Path("runs/x/r1")), {}, verdict, {}).is_usable is usable
