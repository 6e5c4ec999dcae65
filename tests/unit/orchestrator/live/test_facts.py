"""What is fixed for a run, from its own files: the verdict's limits, and whether its radio has an SNR."""

from pathlib import Path

import pytest

from orchestrator.live.facts import read_facts
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.orchestrator.live.conftest import EXPERIMENT
from tests.unit.rove_process import RUN_ID, rove

DISC = "  radio: {model: disc, range: 260 m, bandwidth: 11 Mb/s, latency: 1 ms}\n"


def planned(tmp_path: Path, experiment: str) -> RunDirectory:
    file = tmp_path / "watched.yaml"
    file.write_text(experiment)
    ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode in (0, 3), ended.stderr
    return RunDirectory(tmp_path / "runs" / "watched" / RUN_ID)


def test_the_limits_are_those_of_the_experiment(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("duration: 30s", "duration: 2s").replace(DISC, "").partition("faults:")[0]
    limits = "load: {delay: 2 ms, waited: 0.3, late: 35 ms}\nclocks: {uncertainty: 50 ms}\n"
    facts = read_facts(planned(tmp_path, text + limits))
    assert facts is not None
    assert facts.verdict_limits == pytest.approx(
        {"delay_ms": 2.0, "waited": 0.3, "late_ms": 35.0, "late_ratio": 0.01, "uncertainty_ms": 50.0}
    )
    assert facts.has_signals


def test_a_disc_has_no_snr_and_default_limits(watched: RunDirectory) -> None:
    facts = read_facts(watched)
    assert facts is not None
    assert not facts.has_signals
    assert facts.verdict_limits == {
        "delay_ms": 1.0,
        "waited": 0.5,
        "late_ms": 20.0,
        "late_ratio": 0.01,
        "uncertainty_ms": 20.0,
    }
