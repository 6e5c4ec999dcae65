"""Runs as frames: what ``rove.load`` and ``rove.compare`` give, and the example notebook."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestrator.api import compare, load
from orchestrator.errors import BadInput, RoveError
from tests.synthetic_runs import known_run, small_sweep

pytestmark = pytest.mark.timeout(480)

NOTEBOOK = Path(__file__).parents[2] / "docs" / "example.ipynb"
EXECUTE = """\
import json, sys
import matplotlib
matplotlib.use("Agg")
names = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "cell", "exec"), names)
from pyspark.sql import SparkSession
assert SparkSession.getActiveSession() is None
"""


@pytest.fixture(scope="module")
def runs_dir(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("api") / "runs"
    known_run(root, run="k1").write({"replicas": 2})
    small_sweep(root, ks=(1, 3), seeds=(1, 2, 3)).parent.rename(root / "quickstart")
    return root


def test_a_sweep_and_a_run_are_loaded_together(spark: SparkSession, runs_dir: Path) -> None:
    with load("quickstart", "known", runs_dir=runs_dir) as runs:
        assert len(runs) == 7 and runs.spark is spark
        assert repr(runs) == "<7 runs of quickstart/20260301-130000-bbbb, known/k1>"
        metrics = runs.metrics()
        tuples, sinks = runs.table("tuples"), runs.pandas("apps")
        assert tuples.select("run").distinct().count() == len(metrics) == 7
        assert set(sinks.run) == set(runs.names) == set(metrics.run)
        assert (runs.directories[0].path / "summary.json").is_file() and len(runs.sweeps) == 1
        with pytest.raises(BadInput, match=r"^there is no table 'tuple': there are "):
            runs.table("tuple")
    means = metrics[metrics.experiment == "sweep"].groupby("replicas").goodput_fps.mean()
    assert means.round(1).to_dict() == {1: 3.0, 3: 5.0}
    assert {"seed", "verdict", "usable", "latency_p95_s"} <= set(metrics) and "fates" not in metrics
    with pytest.raises(RoveError, match=r"^these runs are closed: load them again"):
        runs.table("tuples")
    assert spark.range(3).count() == 3  # somebody else's session goes on


def test_frames_stay_while_another_analysis_replaces_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    run = known_run(tmp_path, run="one").write()
    with load(run, runs_dir=tmp_path) as runs:
        tuples = runs.table("tuples")
        before = tuples.count()
        segment = next((run / "nodes" / "n9" / "segments").iterdir())
        segment.write_bytes(segment.read_bytes())  # changed
        with load(run, runs_dir=tmp_path) as again:
            assert again.table("tuples").count() == tuples.count() == before > 0
            assert len(list((tmp_path / ".tables").glob("*/tuples/*"))) == 2


def test_comparisons_are_those_of_the_verb(runs_dir: Path) -> None:
    found = compare("quickstart", runs_dir=runs_dir)
    assert str(found).startswith("k = 3 has 1.68 × the goodput of k = 1 (95 % interval ")
    row = found.frame().query("metric == 'goodput_fps' and label == 'k = 3'").iloc[0]
    assert (row.pairs, row.n) == (3, 3) and row.effect_size == "large"
    with load("known", runs_dir=runs_dir) as runs, pytest.raises(BadInput, match="labels for 1 things"):
        compare(runs, labels=["a", "b"])


def test_the_example_notebook_runs(runs_dir: Path) -> None:
    """It starts and stops Spark itself."""
    assert not any(cell.get("outputs") for cell in json.loads(NOTEBOOK.read_text())["cells"])
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(NOTEBOOK)],
        cwd=runs_dir.parent,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    assert "× the goodput of k = 1" in done.stdout
