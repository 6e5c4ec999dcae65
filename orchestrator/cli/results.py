"""The table of results: a row for each combination of factors, mean ± deviation over seeds.

Metrics declare its columns. With several applications, each has a table.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

from orchestrator.cli.output import console
from orchestrator.results import registry
from orchestrator.results.cells import cells
from orchestrator.results.contribution import Breakdown, Column
from orchestrator.results.gains import gains
from orchestrator.results.inputs import OLD_KIND, OLD_NAME, read_run
from orchestrator.results.views import short
from orchestrator.runs.run_directory import RunDirectory

_NO_VALUE = "–"

Cell = Mapping[str, Any]


class _Column(NamedTuple):
    heading: str
    metric: str
    factor: float
    digits: int


def cells_of(summary: Mapping[str, Any]) -> list[Cell]:
    """Of a sweep's summary.json or a run's; a single run is a cell of its own, whatever its verdict."""
    return list(summary["cells"]) if "cells" in summary else list(cells([dict(summary)], [True]))


def show_summaries(analysed: Sequence[tuple[RunDirectory, Mapping[str, Any]]]) -> None:
    """Shows runs in one table, and each sweep in one of its own. A run that failed has no figures, and a run
    that is not valid has its verdict below: neither must look like a result.
    """
    alone = [(place, summary) for place, summary in analysed if "cells" not in summary]
    rows = [cell for place, summary in alone if has_figures(place, summary) for cell in cells_of(summary)]
    for each in ([rows] if rows else []) + [cells_of(s) for _, s in analysed if "cells" in s]:
        show_results(each)
    for place, summary in analysed:
        if summary.get("verdict") != "valid":
            _show_doubts(place, summary)


def has_figures(place: RunDirectory, summary: Mapping[str, Any]) -> bool:
    """Says whether the run was measured; one that only failed an expectation was."""
    return summary.get("verdict") != "failed" or read_run(place).is_usable


def _show_doubts(place: RunDirectory, summary: Mapping[str, Any]) -> None:
    verdict = summary.get("verdict")
    figures = "cells" in summary or has_figures(place, summary)
    text = f"{place.experiment} {place.id}: {verdict or 'not judged'}{'' if figures else ', no result'}"
    console.print(text, markup=False, soft_wrap=True)
    for reason in summary.get("reasons") or ():
        console.print(f"  {reason}", markup=False, soft_wrap=True)


def applications(rows: Sequence[Cell]) -> dict[str, str]:
    """The kinds of the applications of some cells, by name."""
    return {name: app["kind"] for row in rows for name, app in row["apps"].items()}


def results_table(rows: Sequence[Cell], app: str | None = None) -> Table:
    """``rows`` are cells as in a sweep's summary.json. It fits 80 columns with one factor.

    ``app``: the application to show; None: the only one.
    """
    name, kind = next((n, k) for n, k in applications(rows).items() if app in (None, n))
    figures = [row["apps"].get(name, {"metrics": {}}) for row in rows]
    table = _table()
    factors = _factors(rows)
    columns = list(_columns(kind, figures))
    for heading in map(short, factors):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("runs", *(column.heading for column in columns)):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, found in zip(rows, figures, strict=True):
        table.add_row(
            *(escape(str(row["factors"].get(factor, _NO_VALUE))) for factor in factors),
            _runs(row),
            *(_spread(found["metrics"].get(c.metric), c.factor, c.digits) for c in columns),
        )
    return table


def show_results(rows: Sequence[Cell]) -> None:
    """On the console."""
    apps = applications(rows)
    for name, kind in apps.items():
        if len(apps) > 1:
            console.print(f"{name} ({kind})", style="bold", markup=False)
        console.print(results_table(rows, name))
        for breakdown in registry.breakdowns(kind):
            if (parts := _parts_table(rows, name, breakdown)) is not None:
                console.print(parts)
        for sentence in gains(rows, name, kind):
            console.print(sentence, markup=False, soft_wrap=True)


def _table() -> Table:
    return Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))


def _factors(rows: Sequence[Cell]) -> list[str]:
    return list({name: None for row in rows for name in row["factors"]})


def _parts_table(rows: Sequence[Cell], app: str, breakdown: Breakdown) -> Table | None:
    """Returns a row for each part, such as a sink, so that one that received nothing is seen."""
    columns = [(column.metric, column.console) for column in breakdown.columns if column.console]
    if not columns or not any(row["apps"].get(app, {}).get(breakdown.metric) for row in rows):
        return None
    table = _table()
    factors = _factors(rows)
    for heading in (*map(short, factors), breakdown.one):
        table.add_column(heading, no_wrap=True)
    for _, column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in rows:
        for part, figures in row["apps"].get(app, {}).get(breakdown.metric, {}).items():
            table.add_row(
                *(escape(str(row["factors"].get(name, _NO_VALUE))) for name in factors),
                escape(part),
                *(_spread(figures[metric], c.factor, c.digits or 0) for metric, c in columns),
            )
    return table


def notes(summary: Mapping[str, Any]) -> list[str]:
    """Returns important facts that the table does not show."""
    entries = summary.get("apps") or {OLD_NAME: {"kind": OLD_KIND, **summary}}
    return [
        note if len(entries) == 1 else f"{name}: {note}"
        for name, entry in entries.items()
        for each in registry.about(entry["kind"])
        for note in each.notes(entry, ())
    ]


def _columns(kind: str, figures: Sequence[Mapping[str, Any]]) -> Iterator[_Column]:
    """Those that metrics declare, as far as some of the cells have them."""
    declared = [(each.console, each) for each in registry.metrics(kind).values() if each.console]
    for column, metric in sorted(declared, key=lambda each: each[0].place):
        if metric.is_known(figures):
            yield _column(column, metric.name, figures)


def _column(column: Column, metric: str, figures: Sequence[Mapping[str, Any]]) -> _Column:
    """Formats a column in one unit, so that values compare: milliseconds if all are below a second.

    It uses as many decimals as give the largest value three digits: more would be noise.
    """
    largest = max((found["metrics"].get(metric, {}).get("mean") or 0.0 for found in figures), default=0.0)
    brief = column.short is not None and largest < 1.0
    heading = column.short if brief and column.short else column.heading
    factor = 1e3 if brief else column.factor
    if column.digits is not None:
        return _Column(heading, metric, factor, column.digits)
    largest *= factor
    return _Column(heading, metric, factor, 2 if largest < 10 else 1 if largest < 100 else 0)


def _runs(row: Cell) -> str:
    left_out = len(row["excluded"])
    return f"{row['n']} of {row['n'] + left_out}" if left_out else str(row["n"])


def _spread(spread: Mapping[str, Any] | None, factor: float, digits: int) -> str:
    if not spread or spread["mean"] is None:
        return _NO_VALUE
    text = f"{spread['mean'] * factor:.{digits}f}"
    return text if spread["sd"] is None else f"{text}±{spread['sd'] * factor:.{digits}f}"
