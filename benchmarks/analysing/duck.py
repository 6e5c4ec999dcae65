"""Analyses a sweep with DuckDB instead of the product: ``python -m benchmarks.analysing.duck SWEEP OUT``.

Writes each table as Parquet, ``OUT/<table>.parquet``, and ``OUT/summaries.json`` with the metrics by run.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.analysing import duck_flows, duck_paths, duck_tables
from benchmarks.analysing.duck_metrics import Metrics
from benchmarks.analysing.plans import Plans

THREADS = 2
"""As many as Spark has."""
MEMORY = "6GB"

_TEXTS = pa.list_(pa.string())
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_TYPES = {
    **dict.fromkeys(("boot", "seed", "measure_from_ns", "measure_until_ns"), pa.int64()),
    **dict.fromkeys(("fault", "from_ns", "until_ns"), pa.int64()),
    "begins": pa.bool_(),
    **dict.fromkeys(("source_nodes", "sink_nodes", "reasons"), _TEXTS),
    **dict.fromkeys(("factors", "versions"), _TEXT_MAP),
}
_EMPTY = {
    "planned_flows": ("run", "app", "flow", "source", "sink", "protocol"),
    "streams": ("run", "app", "replica", "origin", "begins"),
    "leads": ("run", "app", "toward", "sink"),
    "makers": ("run", "app", "origin", "node"),
    "sources": ("run", "app", "replica"),
    "faults": ("run", "fault", "what", "node", "from_ns", "until_ns"),
}
"""The columns of small tables that may have no rows."""


def analyse(sweep: Path, out: Path) -> None:
    plans = Plans(sweep)
    out.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as duck:
        duck.execute(f"SET threads = {THREADS}")
        duck.execute(f"SET memory_limit = '{MEMORY}'")
        duck.execute("SET temp_directory = ?", [str(out / "spilled")])
        duck.execute("SET TimeZone = 'UTC'")
        make_tables(duck, plans)
        for table, order in duck_tables.ORDER.items():
            columns = ", ".join(("run", *order))
            duck.execute(
                f"COPY (SELECT * FROM {table} ORDER BY {columns}) TO '{out / table}.parquet' "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
        metrics = Metrics(duck, plans)
        summaries = {run: metrics.summary(run) for run in plans.directories}
    (out / "summaries.json").write_text(json.dumps(summaries))


def make_tables(duck: duckdb.DuckDBPyConnection, plans: Plans) -> None:
    for name, rows in plans.tables.items():
        names = list(rows[0]) if rows else _EMPTY[name]
        schema = pa.schema([(column, _TYPES.get(column, pa.string())) for column in names])
        duck.register("given", pa.Table.from_pylist(rows, schema))
        duck.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        duck.unregister("given")
    duck.execute(duck_tables.LINES, {"files": [row["file"] for row in plans.tables["files"]]})
    for what in duck_tables.TRUTH:
        files = [row["file"] for row in plans.tables["truth_files"] if row["what"] == what]
        duck.execute(duck_tables.truth(what, bool(files)), {"files": files} if files else None)
    duck.execute(duck_tables.NODES)
    twice = duck.execute("SELECT coalesce(sum(duplicates), 0) FROM nodes").fetchone()
    for statement in duck_tables.statements(bool(twice and twice[0])):
        duck.execute(statement)
    for statement in (*duck_paths.STATEMENTS, *duck_flows.STATEMENTS):
        duck.execute(statement)
    duck.execute("DROP TABLE lines")
    duck.execute("DROP TABLE events")
    rows = list(_connectivity(duck, plans))
    kinds = {"run": pa.string(), "app": pa.string(), "from_ns": pa.int64(), "until_ns": pa.int64()}
    schema = pa.schema([*kinds.items(), ("connected", pa.bool_())])
    duck.register("given", pa.Table.from_pylist(rows, schema))
    duck.execute("CREATE TABLE connectivity AS SELECT * FROM given")
    duck.unregister("given")


def _connectivity(duck: duckdb.DuckDBPyConnection, plans: Plans) -> Iterator[dict[str, Any]]:
    """Yields the rows of the table, by a search in the graph of links each time that it changes. SQL has no
    search that would be cheaper.
    """
    apps: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in plans.tables["apps"]:
        apps[row["run"]].append(row)
    spans = {
        run: (first, ended) for run, first, ended in _all(duck, "SELECT run, first_ns, ended_ns FROM runs")
    }
    # Only what came up or went down; a change of cost changes no path.
    changes = """
    SELECT run, t_ns, src, dst, up FROM (SELECT *, lag(up, 1, false) OVER
      (PARTITION BY run, src, dst ORDER BY t_ns, up) AS was_up FROM raw_links) WHERE up <> was_up
    ORDER BY run, t_ns"""
    for run, of_run in groupby(_all(duck, changes), key=itemgetter(0)):
        first, ended = spans[run]
        graph: dict[str, set[str]] = defaultdict(set)
        since = {row["app"]: (first, False) for row in apps[run]}
        for t_ns, at_once in groupby(of_run, key=itemgetter(1)):
            if t_ns >= ended:
                break
            for _, _, src, dst, up in at_once:
                (graph[src].add if up else graph[src].discard)(dst)
            for row in apps[run]:
                begin, connected = since[row["app"]]
                sinks = set(row["sink_nodes"])
                now = all(_reaches(graph, source, sinks) for source in row["source_nodes"])
                if now != connected:
                    if t_ns > begin:
                        yield _interval(run, row["app"], begin, t_ns, connected)
                        begin = t_ns
                    since[row["app"]] = (begin, now)
        for app, (begin, connected) in since.items():
            if ended > begin:
                yield _interval(run, app, begin, ended, connected)


def _all(duck: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return duck.execute(query).fetchall()


def _interval(run: str, app: str, from_ns: int, until_ns: int, connected: bool) -> dict[str, Any]:
    return {"run": run, "app": app, "from_ns": from_ns, "until_ns": until_ns, "connected": connected}


def _reaches(graph: dict[str, set[str]], source: str, sinks: set[str]) -> bool:
    seen, frontier = {source}, {source}
    while frontier:
        if frontier & sinks:
            return True
        frontier = {peer for node in frontier for peer in graph[node]} - seen
        seen |= frontier
    return False


if __name__ == "__main__":
    analyse(Path(sys.argv[1]), Path(sys.argv[2]))
