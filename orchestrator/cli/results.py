"""The table that people came for: a row for each combination of factors, mean ± deviation over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

from orchestrator.analytics.cells import REPLICAS, cells
from orchestrator.analytics.markup import passed_over
from orchestrator.cli.output import console

VERDICT_STYLES = {"valid": "green", "invalid": "yellow", "failed": "red"}
_NO_VALUE = "–"

Cell = Mapping[str, Any]


class _Column(NamedTuple):
    heading: str
    metric: str
    factor: float
    digits: int


_OF_FACES = (_Column("found\n%", "detection_rate", 100, 1), _Column("rank-1\n%", "rank1", 100, 1))


def cells_of(summary: Mapping[str, Any]) -> list[Cell]:
    """Of a sweep's summary.json or a run's; a single run is a cell of its own, whatever its verdict."""
    return list(summary["cells"]) if "cells" in summary else list(cells([dict(summary)], [True]))


def results_table(rows: Sequence[Cell]) -> Table:
    """``rows`` are cells as in a sweep's summary.json. It fits 80 columns with one factor."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    factors = list({name: None for row in rows for name in row["factors"]})
    for name in factors:
        table.add_column(_short(name), justify="right", no_wrap=True)
    columns = _columns(rows)
    base = _baseline(rows)
    gains = [f"through-\nput × {base}"] if base else []
    for heading in ("runs", *(column.heading for column in columns), *gains):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        gain = row.get("versus", {}).get("ratios", {}).get("throughput_fps")
        table.add_row(
            *(escape(str(row["factors"].get(name, _NO_VALUE))) for name in factors),
            _runs(row),
            *(_spread(row["metrics"].get(c.metric), c.factor, c.digits) for c in columns),
            *([_spread(gain, 1, 2)] if base else []),
        )
    return table


def show_results(rows: Sequence[Cell]) -> None:
    """On the console."""
    console.print(results_table(rows))
    if (sinks := sinks_table(rows)) is not None:
        console.print(sinks)


def sinks_table(rows: Sequence[Cell]) -> Table | None:
    """A row for each sink, where a query has several: a sink that got nothing must not go unseen."""
    if not any(row.get("sinks") for row in rows):
        return None
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    factors = list({name: None for row in rows for name in row["factors"]})
    for heading in (*map(_short, factors), "sink"):
        table.add_column(heading, no_wrap=True)
    for heading in ("owed", "delivered", "loss %", "goodput /s", "p95 s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        for sink, figures in row.get("sinks", {}).items():
            table.add_row(
                *(escape(str(row["factors"].get(name, _NO_VALUE))) for name in factors),
                escape(sink),
                _spread(figures["owed"], 1, 0),
                _spread(figures["delivered"], 1, 0),
                _spread(figures["loss_ratio"], 100, 1),
                _spread(figures["goodput_fps"], 1, 2),
                _spread(figures["latency_p95_s"], 1, 3),
            )
    return table


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What the table does not show and must not go unseen."""
    told = passed_over(summary.get("operator_faults") or {})
    return [f"Operators passed over what they could not use: {told}."] if told else []


def _short(factor: str) -> str:
    """``replicas`` is k everywhere else, too; ``topology.mobility.speed`` is known by its last part."""
    return "k" if factor == REPLICAS else factor.rpartition(".")[2]


def _columns(rows: Sequence[Cell]) -> list[_Column]:
    return [
        _three_digits("through-\nput /s", "throughput_fps", 1, rows),
        _three_digits("goodput\n/s", "goodput_fps", 1, rows),
        _latency("p50", "latency_p50_s", rows),
        _latency("p95", "latency_p95_s", rows),
        _Column("loss\n%", "loss_ratio", 100, 1),
        _Column("route\nswitches", "switches", 1, 0),
        *(column for column in _OF_FACES if any(column.metric in row["metrics"] for row in rows)),
    ]


def _latency(name: str, metric: str, rows: Sequence[Cell]) -> _Column:
    """In milliseconds if all are below a second: one unit a column, or nobody compares right."""
    short = _largest(metric, rows) < 1.0
    return _three_digits(f"latency\n{name} {'ms' if short else 's'}", metric, 1e3 if short else 1, rows)


def _three_digits(heading: str, metric: str, factor: float, rows: Sequence[Cell]) -> _Column:
    """As many decimals as give the largest three digits: more would be noise, and take the room of others."""
    largest = _largest(metric, rows) * factor
    return _Column(heading, metric, factor, 2 if largest < 10 else 1 if largest < 100 else 0)


def _largest(metric: str, rows: Sequence[Cell]) -> float:
    return max((row["metrics"][metric]["mean"] or 0.0 for row in rows), default=0.0)


def _baseline(rows: Sequence[Cell]) -> str | None:
    """What the ratios of throughput are against: ``k=1``."""
    fewest = {row["versus"]["factors"][REPLICAS] for row in rows if "versus" in row}
    if not fewest:
        return None
    return f"k={fewest.pop()}" if len(fewest) == 1 else "least k"


def _runs(row: Cell) -> str:
    left_out = len(row["excluded"])
    return f"{row['n']} of {row['n'] + left_out}" if left_out else str(row["n"])


def _spread(spread: Mapping[str, Any] | None, factor: float, digits: int) -> str:
    if not spread or spread["mean"] is None:
        return _NO_VALUE
    text = f"{spread['mean'] * factor:.{digits}f}"
    return text if spread["sd"] is None else f"{text}±{spread['sd'] * factor:.{digits}f}"


def verdict_text(verdict: object) -> str:
    """``verdict``: what somebody's verdict.json says."""
    if verdict is None:
        return _NO_VALUE
    style = VERDICT_STYLES.get(verdict) if isinstance(verdict, str) else None
    return f"[{style}]{verdict}[/]" if style else escape(str(verdict))
