"""The report's results of an application: a row for each cell, in the columns that metrics declare."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.analytics.parts import contributions_of
from orchestrator.results import registry
from orchestrator.results.comparison import METHODS
from orchestrator.results.contribution import Breakdown, Column, Metric
from orchestrator.results.gains import gains
from orchestrator.results.markup import NOTHING, bullets, definitions, number, table
from orchestrator.results.views import View, label_of, short, varied_factors

LOG_COLUMNS = ("records", "missing", "corrupt_lines", "refused")


def results(view: View) -> str:
    groups = view.groups
    metrics = [each for each in _metrics(view.kind) if each.is_known(groups)]
    compared = [metric for metric in metrics if metric.gain and any("versus" in cell for cell in groups)]
    counts = {cell["n"] for cell in groups}
    headings = ["" if len(groups) > 1 else "run", *(_heading(metric.report) for metric in metrics)]
    headings += [f"{metric.gain}<br>vs fewest {_least(groups)}" for metric in compared]
    headings += ["runs"] if len(counts) > 1 else []
    rows = []
    for cell in groups:
        row = [escape(label_of(cell["factors"]) or str(view.summary["run"]))]
        row += [_cell(cell["metrics"].get(metric.name), metric.report) for metric in metrics]
        ratios = cell.get("versus", {}).get("ratios", {})
        row += [_ratio(ratios.get(metric.name)) for metric in compared]
        row += [str(cell["n"])] if len(counts) > 1 else []
        rows.append(row)
    said = bullets(gains(groups, view.app, view.kind), len(groups) + 1)
    spoken = "".join(f'<p class="soft">{escape(note)}</p>' for note in _notes(view, counts))
    parts = "".join(_parts(groups, breakdown) for breakdown in registry.breakdowns(view.kind))
    return f"<h2>Results</h2>{table(headings, rows)}{said}{spoken}{parts}{_meanings(view.kind)}\n"


def _metrics(kind: str) -> list[Metric]:
    """Returns the metrics that have a column, in their order."""
    shown = [(each.report.place, each) for each in registry.metrics(kind).values() if each.report]
    return [metric for _, metric in sorted(shown, key=lambda each: each[0])]


def _heading(column: Column | None) -> str:
    return column.heading.replace("\n", "<br>") if column else ""


def _cell(spread: Mapping[str, Any] | None, column: Column | None) -> str:
    assert column is not None
    text = number(spread, column.factor, 2 if column.digits is None else column.digits)
    bad = spread and column.bad_above is not None and (spread["mean"] or 0.0) > column.bad_above
    return f'<strong class="bad">{text}</strong>' if bad else text


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    """Returns the ratio of means with its interval."""
    if not ratio or ratio["ratio_of_means"] is None:
        return NOTHING
    interval = ratio["ratio_of_means_95"]
    between = f" <small>{interval[0]:.2f} to {interval[1]:.2f}</small>" if interval else ""
    return f"{ratio['ratio_of_means']:.2f}×{between}"


def _least(groups: Sequence[Mapping[str, Any]]) -> str:
    paths = dict.fromkeys(
        path for cell in groups for path in cell["factors"] if "versus" in cell and registry.factor_of(path)
    )
    return short(next(iter(paths), ""))


def _notes(view: View, counts: set[int]) -> list[str]:
    notes = []
    if max(counts) > 1:
        over = f"{max(counts)} seeds" if len(counts) == 1 else "seeds"
        notes.append(f"Mean ± standard deviation over {over}.")
    if any("versus" in cell for cell in view.groups):
        notes.append(METHODS)
    excluded = [entry["run"] for cell in view.groups for entry in cell["excluded"]]
    if excluded:
        why = "because they are not valid, or were changed by hand"
        notes.append(f"Not in the means, {why}: {', '.join(excluded)}.")
    entry = (view.summary.get("apps") or {}).get(view.app, {})
    metrics = [result["metrics"] for _, result in view.runs]
    return [*notes, *(note for each in contributions_of(view) for note in each.notes(entry, metrics))]


def _meanings(kind: str) -> str:
    found = [metric.meaning for metric in _metrics(kind) if metric.meaning]
    return (
        f'<details class="card"><summary>What the columns mean</summary>{definitions(dict(found))}</details>'
    )


def _parts(groups: Sequence[Mapping[str, Any]], breakdown: Breakdown) -> str:
    """Returns a row for each part, such as a sink, so that one that got nothing is noticed."""
    several = len(groups) > 1
    columns = [(column.metric, column.report) for column in breakdown.columns if column.report]
    rows = [
        [
            *([escape(label_of(cell["factors"]))] if several else []),
            escape(part),
            *(_cell(figures[metric], column) for metric, column in columns),
        ]
        for cell in groups
        for part, figures in cell.get(breakdown.metric, {}).items()
    ]
    if not rows:
        return ""
    headings = [*([""] if several else []), breakdown.one, *(_heading(column) for _, column in columns)]
    return (
        f'<h3 id="{breakdown.metric}">{breakdown.title}</h3>{table(headings, rows)}'
        f'<p class="soft">{escape(breakdown.note)}</p>'
    )


def runs_table(views: Sequence[View]) -> str:
    """Returns a table with a row for every run, and the metrics that declare ``of_each_run``."""
    shown = [(view, metric) for view in views for metric in _metrics(view.kind) if metric.of_each_run]
    several = len(views) > 1
    headings = ["run", "factors", "seed", "verdict"]
    headings += [
        f"{escape(v.app)}<br>{_heading(m.report)}" if several else _heading(m.report) for v, m in shown
    ]
    headings += ["records", "missing", "unreadable", "refused"]
    rows = []
    runs = {run.run: (run, result) for view in views for run, result in view.runs}
    found = {view.app: {run.run: result["metrics"] for run, result in view.runs} for view in views}
    for run, result in runs.values():
        figures = [
            _cell({"mean": found[view.app].get(run.run, {}).get(metric.name), "sd": None}, metric.report)
            for view, metric in shown
        ]
        rows.append(
            [
                escape(run.run),
                escape(label_of(varied_factors(run))) or NOTHING,
                escape(str(run.manifest.get("seed"))),
                escape(str(run.verdict.get("verdict") or NOTHING)),
                *figures,
                *(str(result["series"]["telemetry"][name]) for name in LOG_COLUMNS),
            ]
        )
    return f"<h2>Runs</h2>{table(headings, rows)}\n"
