"""What an extension does wrong is one error that names its file and line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics.compute import _part
from orchestrator.analytics.ingest import TablesInTheMaking
from orchestrator.analytics.report import render
from orchestrator.analytics.summaries import run_summary
from orchestrator.errors import RoveError
from orchestrator.results.columns import TEXT
from orchestrator.results.contribution import Contribution, Figures, Metric, Rows, Section, Table
from orchestrator.results.inputs import RunInput, read_run
from orchestrator.results.registry import ANALYTICS
from orchestrator.results.spark import Subject
from orchestrator.results.views import View
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run
from tests.unit.orchestrator.analytics.test_report import result


def broken(*arguments: Any) -> Any:
    return {}["nothing"]  # type: ignore[index]


@pytest.fixture
def run(tmp_path: Path) -> RunInput:
    return read_run(RunDirectory(known_run(tmp_path).write()))


@pytest.fixture
def bad(run: RunInput) -> Iterator[Contribution]:
    table = Table("bad", "nothing", {"run": TEXT, "app": TEXT}, ("app",), broken)
    contribution = Contribution("query", tables=(table,), sections=(Section(350, broken),))
    ANALYTICS.register("bad", contribution)
    yield contribution
    ANALYTICS.unregister("bad")


def test_of_a_table(run: RunInput, bad: Contribution) -> None:
    with pytest.raises(
        RoveError, match=r"the table 'bad' cannot be made: test_bad_contributions\.py, line \d+: KeyError"
    ):
        TablesInTheMaking(None, None, [run], Path()).table("bad")  # type: ignore[arg-type]


def test_of_a_section(run: RunInput, bad: Contribution) -> None:
    found = result(1, 1, 1)
    summary = run_summary(run, found)
    with pytest.raises(RoveError, match=r"place 350 cannot be written: test_bad_contributions\.py, line \d+"):
        render(run.directory, summary, [(run, found)])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (lambda subject, rows: {"other": 1}, "mine, kept: other is computed but not declared"),
        (lambda subject, rows: {"mine": 1}, "mine, kept: kept is not computed"),
        (lambda subject, rows: {"kept": []}, "mine, kept: mine is not computed"),
        (broken, r"mine, kept cannot be computed: test_bad_contributions\.py, line \d+: KeyError"),
        (lambda subject, rows: None, "mine, kept cannot be computed: .*TypeError"),
    ],
)
def test_of_values(run: RunInput, values: Any, says: str) -> None:
    figures = Figures(lambda reading: {}, values, (Metric("mine", ""),), series={"kept": list[int]})
    with pytest.raises(RoveError, match=says):
        _part(Subject(run, None, 0, None), [figures], {figures: {}})


def test_an_optional_metric_may_be_left_out(run: RunInput) -> None:
    def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
        return {"kept": rows["never asked for"]}

    metric = replace(Metric("mine", ""), optional=True)
    figures = Figures(lambda reading: {}, values, (metric,), series={"kept": list[int]})
    found = _part(Subject(run, None, 0, None), [figures], {figures: {}})
    assert found == {"metrics": {}, "series": {"kept": []}}


def test_a_section_is_given_the_view_of_its_application(run: RunInput) -> None:
    seen: list[View] = []

    def look(view: View) -> str:
        seen.append(view)
        return ""

    ANALYTICS.register("look", Contribution("query", sections=(Section(1, look),)))
    try:
        found = result(1, 1, 1)
        render(run.directory, run_summary(run, found), [(run, found)])
    finally:
        ANALYTICS.unregister("look")
    (view,) = seen
    assert (view.app, view.kind, view.is_only) == ("query", "query", True)
    assert view.groups[0]["metrics"]["goodput_fps"]["mean"] == 1.0
    assert {"routing_overhead", "goodput_fps"} <= view.runs[0][1]["metrics"].keys()
