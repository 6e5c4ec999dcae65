"""Makes the tables of the core: one function for each table. ``tables`` declares them.

Tables with few rows for each run are made here, in Python; ground truth becomes a table as it was read.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.analytics.core.connectivity import changes_in, connected_intervals
from orchestrator.analytics.core.tables import APPS, CONNECTIVITY, RUNS
from orchestrator.analytics.ingest import TablesInTheMaking
from orchestrator.analytics.intake import columns as kept
from orchestrator.results.columns import Columns
from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest
from orchestrator.results.truth import DELIVERIES, LINKS, NEXT, POSITIONS

_COUNTS = ("records", "duplicates", "corrupt_lines", "refused")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


def nodes(making: TablesInTheMaking) -> pa.Table:
    return making.noted(kept.BOOT, kept.BOOTS)


def quarantine(making: TablesInTheMaking) -> pa.Table:
    return making.noted(kept.BAD, kept.QUARANTINE)


def runs(making: TablesInTheMaking) -> pa.Table:
    return _plain(_run_rows(making), RUNS.columns)


def _run_rows(making: TablesInTheMaking) -> list[Row]:
    boots: dict[str, list[Row]] = {}
    for boot in making.noted(kept.BOOT, kept.BOOTS).to_pylist():
        boots.setdefault(boot["run"], []).append(boot)
    return [_with_totals(run.row(), boots.get(run.run, ())) for run in making.runs]


def _with_totals(row: Row, boots: Iterable[Row]) -> Row:
    """Adds what its telemetry says.

    A node that records wrong times must not move the beginning or the end of the run: both are at most one
    run's length away from the measured window.
    """
    found = list(boots)
    first = min((boot["first_ns"] for boot in found if boot["first_ns"] is not None), default=None)
    ended = max((boot["last_ns"] for boot in found if boot["last_ns"] is not None), default=None)
    begun, over = row["started"], row["finished"]
    if row["clock"] == "real" and begun is not None and over is not None:
        length = _since_1970_ns(over) - _since_1970_ns(begun)
        if first is not None and row["measure_from_ns"] is not None:
            first = max(first, row["measure_from_ns"] - length)
        if ended is not None and row["measure_until_ns"] is not None:
            ended = min(ended, row["measure_until_ns"] + length)
    counts = {name: sum(boot[name] for boot in found) for name in _COUNTS}
    return {**row, "first_ns": first, "ended_ns": ended, **counts}


def _since_1970_ns(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000


def _plain(rows: Iterable[Mapping[str, Any]], columns: Columns) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], kept.arrow(columns))


def apps(making: TablesInTheMaking) -> pa.Table:
    rows = [
        {
            "run": run.run,
            "app": app.name,
            "kind": app.kind,
            "source_nodes": list(app.ends.sources),
            "sink_nodes": list(app.ends.sinks),
        }
        for run in making.runs
        for app in run.apps.values()
    ]
    return _plain(rows, APPS.columns)


def links_truth(ingest: Ingest) -> AsRead:
    return AsRead(
        truth=LINKS,
        names={"up_ns": "t_ns", "down_ns": NEXT},
        where=lambda rows: pc.fill_null(rows["up"], False),
    )


def positions(ingest: Ingest) -> AsRead:
    return AsRead(truth=POSITIONS, where=_is_near)


def deliveries(ingest: Ingest) -> AsRead:
    return AsRead(truth=DELIVERIES, where=_is_counted)


# Ground truth of somebody else's run may contain anything.
def _is_near(rows: pa.Table) -> pa.ChunkedArray:
    return _all(pc.less(pc.abs(rows[name]), 1e12) for name in ("x", "y"))


def _is_counted(rows: pa.Table) -> pa.ChunkedArray:
    counts = [between(rows[name], 0, 10**15) for name in ("attempted", "delivered")]
    return _all([*counts, between(pc.fill_null(rows["expected"], 0.0), 0, 1)])


def between(values: pa.ChunkedArray, low: float, high: float) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def _all(conditions: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    return reduce(pc.and_, conditions)


def connectivity(making: TablesInTheMaking) -> pa.Table:
    spans = {row["run"]: row for row in _run_rows(making)}
    rows = []
    for run in making.runs:
        span, links = spans[run.run], run.truth(LINKS)
        if links is None or span["ended_ns"] is None:
            continue  # without the true links, connectivity is unknown, which is not the same as unconnected
        for app in run.apps.values():
            if app.ends.sources and app.ends.sinks:
                between = (*app.ends, span["first_ns"], span["ended_ns"])
                intervals = connected_intervals(changes_in(links), *between)
                rows += [{"run": run.run, "app": app.name, **each._asdict()} for each in intervals]
    return _plain(rows, CONNECTIVITY.columns)
