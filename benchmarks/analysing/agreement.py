"""Compares the product's tables and summaries with those that DuckDB made from the same runs."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

TOLERANCE = 1e-6
"""Of fractions, relative or absolute. Counts must be equal."""


class Agreement(NamedTuple):
    """``differences``: what the two do not agree in. ``left_out``: metrics that only the product has."""

    compared: int
    differences: tuple[str, ...]
    left_out: tuple[str, ...]


def compare(sweep: Path, duck: Path) -> Agreement:
    summaries: dict[str, Any] = json.loads((duck / "summaries.json").read_text())
    differences: list[str] = []
    left_out: set[str] = set()
    compared = 0
    for run, expected in summaries.items():
        found = json.loads((sweep.parent / run / "summary.json").read_text())
        pairs = list(_pairs(expected, found, ""))
        compared += len(pairs)
        differences += [
            f"{run}: {where}: DuckDB has {ours!r}, Rove {theirs!r}"
            for where, ours, theirs in pairs
            if not _alike(ours, theirs)
        ]
        for app, part in expected["apps"].items():
            known = found["apps"].get(app, {}).get("metrics", {})
            left_out |= {f"{part['kind']}.{name}" for name in known if name not in part["metrics"]}
        of_apps = {name for part in found["apps"].values() for name in part["metrics"]}
        left_out |= {
            f"run.{name}" for name in found["metrics"] if name not in {*expected["metrics"], *of_apps}
        }
    differences += _tables(sweep.parent.parent / ".tables", duck)
    return Agreement(compared, tuple(differences), tuple(sorted(left_out)))


def _pairs(ours: Any, theirs: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields each value of ``ours`` with its counterpart."""
    if not isinstance(ours, Mapping):
        yield where, ours, theirs
        return
    if not isinstance(theirs, Mapping):
        yield where, dict(ours), theirs
        return
    for name, value in ours.items():
        yield from _pairs(value, theirs.get(name, "nothing"), f"{where}.{name}".lstrip("."))


def _alike(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(ours == theirs)


def _tables(stored: Path, duck: Path) -> Iterator[str]:
    """Yields tables whose columns or numbers of rows differ; reads Rove's as any tool can."""
    for file in sorted(duck.glob("*.parquet")):
        ours, rows = _described(f"'{file}'")
        pattern = f"{stored}/v*/{file.stem}/**/*.parquet"
        if not any(stored.glob(f"v*/{file.stem}/**/*.parquet")):
            if rows:
                yield f"table {file.stem}: DuckDB has {rows} rows, Rove has no such table"
            continue
        theirs, stored_rows = _described(f"'{pattern}', hive_partitioning = true, union_by_name = true")
        if lacking := theirs - ours:
            yield f"table {file.stem}: DuckDB lacks {', '.join(sorted(lacking))}"
        if lacking := ours - theirs:
            yield f"table {file.stem}: Rove lacks {', '.join(sorted(lacking))}"
        if rows != stored_rows:
            yield f"table {file.stem}: DuckDB has {rows} rows, Rove {stored_rows}"


def _described(files: str) -> tuple[set[str], int]:
    """Returns columns and number of rows."""
    with duckdb.connect() as connection:
        asked = connection.execute(f"SELECT * FROM read_parquet({files}) LIMIT 0")
        columns = {column[0] for column in asked.description or ()}
        counted = connection.execute(f"SELECT count(*) FROM read_parquet({files})").fetchone()
    return columns, counted[0] if counted else 0
