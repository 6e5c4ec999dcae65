"""A small run of moving interests through the analysis: tables, figures and report against its JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.town import document
from tests.unit.rove_process import RUN_ID, rove, run_under_test

pytestmark = pytest.mark.timeout(400)

Lines = dict[str, list[dict[str, Any]]]
TABLES = {
    "sensor_events": "sensor_read",
    "interest_switches": "interest_switched",
    "situations": "situation_found",
    "interest_brokers": "interest_broker",
    "interest_clients": "interest_client",
    "interest_links": "interest_link",
    "interest_stalls": "interest_stalled",
}


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Lines]]:
    """The run's directory, and its records by kind. A link is cut for a while, so that results are late."""
    folder = tmp_path_factory.mktemp("interest")
    file = folder / "town.yaml"
    file.write_text(to_yaml(document(cuts={("b1", "b2"): [["0s", "6s"], ["16s", "100s"]]})))
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


def last(records: list[dict[str, Any]], field: str, *key: str) -> int:
    """Adds up what each node, or each of its links, counted in the end."""
    newest: dict[tuple[Any, ...], int] = {}
    for record in sorted(records, key=lambda each: each["seq"]):
        newest[tuple(record[name] for name in ("node", *key))] = record[field]
    return sum(newest.values())


def test_figures_are_those_of_the_lines(analysed: tuple[Path, Lines]) -> None:
    directory, lines = analysed
    found = json.loads((directory / "summary.json").read_text())["metrics"]
    opened = json.loads((directory / "manifest.json").read_text())["moving_from_ns"]
    starts = {each["epoch"]: each["start_ns"] for each in lines["interest_switched"]}
    situations = lines["situation_found"]
    late = [
        max(0, each["t_ns"] - opened - max(each["at_ns"], starts[each["epoch"]])) / 1e9 for each in situations
    ]
    assert len(situations) > 20 and max(late) > 5
    assert found["situations"] == found["queries"]["near"]["expected"] == len(situations)
    assert found["situations_missing"] == found["situations_surplus"] == 0
    assert found["situations_out_of_order"] == 0
    assert found["situation_delay_mean_s"] == pytest.approx(fmean(late), abs=1e-3)
    assert found["situation_delay_max_s"] == pytest.approx(max(late), abs=1e-3)
    assert found["interest_switches"] == len(lines["interest_switched"])
    assert found["sensor_events"] == len(lines["sensor_read"])
    for metric, field in (("streamed", "streamed"), ("skipped", "skipped"), ("selections", "processed")):
        assert found[f"interest_{metric}"] == last(lines["interest_broker"], field) > 0
    assert found["interest_handovers"] == last(lines["interest_client"], "handovers")
    assert found["interest_bytes"] == last(lines["interest_link"], "bytes", "neighbour") > 0
    assert found["interest_stalls"] == sum(bool(each["reason"]) for each in lines["interest_stalled"]) > 0


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
    assert len(columns) >= 5
    wanted = [[record[name] for name in columns] for record in lines[kind]]
    assert sorted([[row[name] for name in columns] for row in rows], key=repr) == sorted(wanted, key=repr)


def test_the_report_shows_them(analysed: tuple[Path, Lines]) -> None:
    directory, lines = analysed
    page = write_report(directory).read_text()
    assert "Where situations were" in page
    worst = json.loads((directory / "summary.json").read_text())["metrics"]["situation_delay_max_s"]
    number = len(lines["situation_found"])
    assert f"{number} situations, the latest after {worst:.1f} s." in page
    assert "Some nodes stalled" in page and "Rehearsed: results of the same drives" in page
