"""A small run of queries that share selections through the analysis: tables, figures and report."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.test_interest_reuse import shared
from tests.unit.orchestrator.apps.mcep.town import document
from tests.unit.rove_process import RUN_ID, rove, run_under_test

pytestmark = pytest.mark.timeout(400)
TABLES = {
    "situations": "situation_found",
    "selection_managers": "selections_decided",
    "shared_selections": "selections_shared",
}
Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Lines]]:
    """The run's directory, and its records by kind."""
    folder = tmp_path_factory.mktemp("sharing")
    file = folder / "town.yaml"
    interest = shared({"algorithm": "msh", "quality": {"precision": "30%", "recall": "30%"}})
    file.write_text(to_yaml(document(interest)))
    with run_under_test(folder / "runs") as run:
        ended = rove(folder / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        analyze([run.path], spark=spark)
        lines: Lines = {kind: [] for kind in TABLES.values()}
        for segment in sorted(run.path.glob("nodes/*/segments/*.jsonl")):
            for line in segment.read_text().splitlines():
                record = json.loads(line)
                lines.setdefault(record["kind"], []).append(record)
        yield run.path, lines


@pytest.mark.parametrize(("table", "kind"), TABLES.items())
def test_tables_have_a_row_for_each_line(
    spark: SparkSession, analysed: tuple[Path, Lines], table: str, kind: str
) -> None:
    directory, lines = analysed
    rows = [
        row.asDict()
        for row in TableStore(directory.parents[1]).read(spark, table, [RUN_ID]).toLocalIterator()
    ]
    columns = [name for name in rows[0] if name in lines[kind][0]]
    assert len(columns) >= 8
    wanted = [[record[name] for name in columns] for record in lines[kind]]
    assert sorted([[row[name] for name in columns] for row in rows], key=repr) == sorted(wanted, key=repr)


def test_figures_are_those_of_the_lines(analysed: tuple[Path, Lines]) -> None:
    directory, lines = analysed
    found = json.loads((directory / "summary.json").read_text())["metrics"]
    newest = max(lines["selections_decided"], key=lambda each: each["seq"])
    saved = newest["selections"] - newest["processed"]
    assert found["interest_decided"] == newest["selections"] and found["interest_shared"] == saved > 0
    assert found["interest_saved"] == pytest.approx(saved / newest["selections"], abs=1e-3)
    assert found["situations_missing"] == found["situations_surplus"] == 0
    results = lines["situation_found"]
    mean = sum(each["precision"] for each in results) / len(results)
    assert found["interest_precision"] == pytest.approx(mean, abs=1e-3) and 0.3 < mean < 1
    pairs = found["shared_selections"]
    assert sum(each["selections"] for each in pairs.values()) == saved
    assert set(pairs) <= {"near → also", "also → near"}
    assert 0 < found["interest_wait_mean_s"] <= 1 and found["interest_selections"] == newest["processed"]


def test_the_report_shows_who_shared_with_whom(analysed: tuple[Path, Lines]) -> None:
    directory, _ = analysed
    page = write_report(directory).read_text()
    saved = json.loads((directory / "summary.json").read_text())["metrics"]["interest_shared"]
    assert f"{saved} selections got results of another query" in page
    assert "Selection managers" in page and "Who got results of whom" in page
