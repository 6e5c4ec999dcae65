"""The example of an operator that moves through the analysis: table, metrics and report against its lines."""

import json
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import tuple_by_tuple
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from tests.unit.rove_process import RUN_ID, rove

pytestmark = pytest.mark.timeout(400)

FILE = Path(__file__).parents[2] / "experiments" / "migration.yaml"
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lines]:
    runs = tmp_path_factory.mktemp("migration") / "runs"
    ended = rove(runs, "run", str(FILE), "--run-id", RUN_ID, "--no-analyze", timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    path = runs / "migration" / RUN_ID
    analyze([path], spark=spark)
    files = sorted(path.glob("nodes/*/segments/*.jsonl"))
    return path, [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_figures_are_those_of_the_lines(analysed: tuple[Path, Lines]) -> None:
    path, lines = analysed
    metrics = json.loads((path / "summary.json").read_text())["metrics"]
    steps = [line for line in lines if line["kind"] == "migration"]
    arrived = sorted(line["t_ns"] for line in tuple_by_tuple(lines) if line["kind"] == "tuple_delivered")
    longest = []
    for number in (1, 2):
        own = [step["t_ns"] for step in steps if step["migration"] == number]
        since, until = min(own), max(own) + 1_000_000_000
        longest.append(max(b - a for a, b in pairwise(arrived) if b > since and a < until) / 1e9)
    live, stopped = longest
    assert live < 0.1 < 1 < stopped
    assert metrics["migrations_ordered"] == metrics["migrations_moved"] == 2
    assert metrics["migration_gap_max_s"] == pytest.approx(stopped)
    assert metrics["migration_gap_mean_s"] == pytest.approx((live + stopped) / 2)
    assert metrics["delivery_gap_s"] == pytest.approx(median(b - a for a, b in pairwise(arrived)) / 1e9)
    copied = sum(step["size"] for step in steps if step["step"] == "took_over")
    assert metrics["migration_bytes"] == copied > 2 * 2_000_000
    assert metrics["lost"] == metrics["duplicates"] == 0


def test_the_table_has_a_row_for_each_step(spark: SparkSession, analysed: tuple[Path, Lines]) -> None:
    path, lines = analysed
    table = TableStore(path.parents[1]).read(spark, "migrations", [RUN_ID])
    assert table.count() == sum(line["kind"] == "migration" for line in lines)


def test_nobody_waits_for_less_than_no_time(spark: SparkSession, analysed: tuple[Path, Lines]) -> None:
    """An operator that moves records what it took once the result counts."""
    path, _ = analysed
    rows = TableStore(path.parents[1]).read(spark, "paths", [RUN_ID]).where("complete").collect()
    assert len(rows) > 1800
    for row in rows:
        spent = [*row["network_ns"], *row["queue_ns"], *row["compute_ns"]]
        assert min(spent) >= 0 and sum(spent) == row["latency_ns"]
    operator = json.loads((path / "summary.json").read_text())["metrics"]["operators"]["recognise"]
    assert operator["queue_s"] >= 0 and operator["compute_s"] == pytest.approx(0.01)


def test_the_report_shows_them(analysed: tuple[Path, Lines]) -> None:
    path, _ = analysed
    page = write_report(path).read_text()
    assert 'id="migrations"' in page and "stop_and_copy" in page
