"""A table with a metric and a report section, defined here, outside of Rove, and used by ``rove run``."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from orchestrator.cli.main import run as main
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import Column, Contribution, Figures, Metric, Rows, Section, Table
from orchestrator.results.registry import ANALYTICS
from orchestrator.results.spark import Ingest, Reading, Subject, in_window, windows_of
from orchestrator.results.views import View
from tests.conftest import NEEDS

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(NEEDS["spark"]() is not None, reason=str(NEEDS["spark"]())),
]

EXPERIMENT = """
name: mine
topology:
  name: row
  nodes: [a, b]
  area: 300 m x 100 m
  mobility: {model: static, positions: {a: [0, 50], b: [100, 50]}}
  radio: {model: disc, range: 150 m, bandwidth: 11 Mb/s, latency: 1 ms}
backend: sim
routing: ground_truth
query:
  operators:
    camera: {kind: synthetic_source, rate: 10 fps, payload: 1 kB}
    screen: {kind: sink, after: camera}
placement: {policy: explicit, nodes: {camera: [a], screen: [b]}}
warmup: 1s
duration: 4s
seed: 1
expect: ["work_items == 40", "work_items < 10"]
"""


def work(ingest: Ingest) -> DataFrame:
    """A row for each tuple that arrived anywhere."""
    received = ingest.records("tuple_received")
    timed = received.join(windows_of(ingest.table("runs")), "run")
    return timed.where(in_window("t_ns")).withColumn("items", F.coalesce("tuples", F.lit(1)))


def items(reading: Reading) -> Mapping[str, DataFrame]:
    return {"items": reading.table("work").groupBy("run", "app").agg(F.sum("items").alias("items"))}


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    return {"work_items": next((row["items"] for row in rows["items"]), 0)}


def section(view: View) -> str:
    found = view.groups[0]["metrics"]["work_items"]["mean"]
    return f'<h2 id="work">Work</h2><p>{found:.0f} items were worked on.</p>\n'


CONTRIBUTION = Contribution(
    kind="query",
    tables=(
        Table(
            "work",
            "an item of work",
            {"run": TEXT, "app": TEXT, "node": TEXT, "t_ns": COUNT, "replica": TEXT, "items": COUNT},
            ("t_ns", "replica"),
            work,
        ),
    ),
    figures=(
        Figures(
            items,
            values,
            (
                Metric(
                    "work_items",
                    "how many items were worked on",
                    shape=int,
                    averaged=True,
                    console=Column(900, "work\nitems", digits=0),
                    report=Column(900, "work\nitems", digits=0),
                ),
            ),
        ),
    ),
    sections=(Section(350, section),),
)


@pytest.fixture
def registered() -> Iterator[None]:
    ANALYTICS.register("work", CONTRIBUTION)
    yield
    ANALYTICS.unregister("work")


@pytest.fixture
def one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rove run`` uses the session that the tests share: there can only be one in a process."""

    @contextmanager
    def shared(*arguments: object, **options: object) -> Iterator[Callable[[], SparkSession]]:
        yield lambda: spark

    monkeypatch.setattr("orchestrator.spark.session.starting_session", shared)


def rove(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rove", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.usefixtures("registered", "one_session")
def test_a_table_a_metric_and_a_section_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, runs = tmp_path / "mine.yaml", tmp_path / "runs"
    file.write_text(EXPERIMENT)
    code = rove(monkeypatch, "run", str(file), "--runs-dir", str(runs), "--run-id", "r1")
    directory = runs / "mine" / "r1"
    # It can be expected like any other, and what does not hold fails the run.
    verdict = json.loads((directory / "verdict.json").read_text())
    assert (code, verdict["verdict"]) == (1, "failed")
    assert [(each["value"], each["holds"]) for each in verdict["expectations"]] == [(40, True), (40, False)]
    assert verdict["reasons"] == ["expectation does not hold: expected work_items < 10, got 40"]
    # It stands in the summary, on the console and in the report.
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["metrics"]["work_items"] == summary["apps"]["query"]["metrics"]["work_items"] == 40
    printed = capsys.readouterr().out
    assert "items" in printed
    page = (directory / "report.html").read_text()
    assert "<p>40 items were worked on.</p>" in page
    assert '<th scope="col">work<br>items</th>' in page
    assert list((runs / ".tables").glob("v*/work/*.parquet"))


def test_without_it_the_name_means_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(EXPERIMENT)
    assert rove(monkeypatch, "validate", str(file)) == 2
    assert "unknown metric 'work_items'" in capsys.readouterr().err
