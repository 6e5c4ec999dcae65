"""Compares tables and metrics of 50 random runs with a recomputation in plain Python, by the docs alone."""

import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from orchestrator.analytics.pipeline import analyze
from tests.independent.making import make
from tests.independent.recomputed import Recomputed
from tests.independent.world import Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 50
TOLERANCE = 1e-6
"""Of fractions. A millionth of a second is also what rounding clocks to nanoseconds stays far below."""


def differences(ours: Any, theirs: Any, where: str) -> Iterator[str]:
    """Yields where two documents differ. A metric that only one of them has is a difference, too."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for name in sorted({*ours, *theirs}):
            yield from differences(ours.get(name, "nothing"), theirs.get(name, "nothing"), f"{where}.{name}")
    elif isinstance(ours, float) and isinstance(theirs, float | int):
        if not math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{where}: recomputed {ours}, Rove has {theirs}"
    elif ours != theirs:
        yield f"{where}: recomputed {ours!r}, Rove has {theirs!r}"


def rows_by_run(runs: Path) -> dict[str, dict[str, int]]:
    """Returns how many rows each table has of each run; reads them as any tool can."""
    found: dict[str, dict[str, int]] = {}
    for table in runs.glob(".tables/v*/*"):
        if any(table.rglob("*.parquet")):
            rows = pd.read_parquet(table, columns=["run"])
            for run, count in rows["run"].astype(str).value_counts().items():
                found.setdefault(str(run), {})[table.name] = int(count)
    return found


def untruths(told: Told, telemetry: Mapping[str, int]) -> Iterator[str]:
    """Yields what the analysis counts in another way than those who damaged the files."""
    if telemetry["corrupt_lines"] != told.corrupt:
        yield f"{told.corrupt} lines are corrupt, Rove counts {telemetry['corrupt_lines']}"
    if told.corrupt or told.removed or told.duplicates:
        return  # a record that was refused may be among them
    known = (told.records - told.refused, told.refused, 0)
    if known != tuple(telemetry[name] for name in ("records", "refused", "missing")):
        yield f"records, refused and missing are {known}, Rove counts {telemetry}"


@pytest.mark.timeout(1800)
def test_analysis_agrees_with_an_independent_recomputation(spark: "SparkSession", tmp_path: Path) -> None:
    made = [make(seed, tmp_path) for seed in range(RUNS)]
    summaries = analyze([directory for _, directory in made], spark=spark)
    stored = rows_by_run(tmp_path)
    found: list[str] = []
    for (world, directory), summary in zip(made, summaries, strict=True):
        recomputed, where = Recomputed(directory), f"seed {world.seed}"
        compared = {name: summary[name] for name in ("metrics", "apps", "telemetry", "nodes")}
        found += differences(recomputed.summary(), compared, where)
        counted = {table: stored[world.run].get(table, 0) for table in recomputed.rows}
        found += differences(recomputed.rows, counted, f"{where}: rows of")
        found += [f"{where}: {each}" for each in untruths(world.told, summary["telemetry"])]
    assert not found, "\n".join([f"{len(found)} differences", *found[:40]])


@pytest.mark.timeout(1800)
def test_a_run_alone_has_the_results_that_it_has_beside_others(spark: "SparkSession", tmp_path: Path) -> None:
    """Of a single run the analysis knows some values beforehand, and asks Spark in another way."""
    directories = [make(seed, tmp_path / "runs")[1] for seed in range(3)]
    together = analyze(directories, spark=spark)
    for directory, summary in zip(directories, together, strict=True):
        alone = tmp_path / directory.name / directory.relative_to(tmp_path)
        shutil.copytree(directory, alone)
        assert analyze([alone], spark=spark) == [summary]
