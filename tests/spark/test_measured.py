"""What benchmarks compute from records without Spark is what the analysis says."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.shared.measured import measured
from orchestrator.analytics.pipeline import analyze
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import rove

pytestmark = pytest.mark.timeout(300)

MOVING = """\
name: moving
topology:
  name: field
  nodes: 9
  area: 900 m x 900 m
  mobility: {model: random_waypoint, speed: 20 m/s, speed_spread: 1 m/s}
backend: sim
query: {name: synthetic_chain, operators: 2, rate: saturate, payload: 10 kB}
replicas: 2
warmup: 3s
duration: 25s
seed: 2
"""


@pytest.mark.parametrize("window", [MOVING, MOVING.replace("saturate", "30 fps").replace("25s", "600 ms")])
def test_figures_are_those_of_the_analysis(spark: SparkSession, tmp_path: Path, window: str) -> None:
    file = tmp_path / "moving.yaml"
    file.write_text(window)
    ended = rove(tmp_path, "run", str(file), "--run-id", "r1", "--no-analyze", timeout=120)
    assert ended.returncode == 0, ended.stderr
    directory = RunDirectory(tmp_path / "moving" / "r1")
    (summary,) = analyze([directory.path], spark=spark)
    reported: dict[str, Any] = summary["apps"]["query"]["metrics"]
    found = measured(directory)
    assert reported["delivered"] > 0
    assert found == pytest.approx({name: reported[name] for name in found}, rel=1e-6)
