"""Measures what the analysis costs: processor time and memory, beside DuckDB making the same tables and
metrics.

A few real runs in virtual time (a saturated query of 25 nodes, several applications with a crash, flows; all
with ground truth) are copied under other names until there are enough records. ``rove analyze`` of all of
them is measured with its JVM, from nothing to ``summary.json``. Before that, one analysis lets Rove archive
Java's classes, which it does once on a machine (``orchestrator.spark.class_archive``). DuckDB then reads the
same segments and ground truth, makes the same tables with the same columns, writes them as Parquet and
computes the same metrics. Both must agree: counts and numbers of rows exactly, fractions to 1e-6.

    python -m benchmarks.spark_pipeline                                      # 2 million records, about 1 GB
    python -m benchmarks.spark_pipeline --records 2000000 20000000 --curve curve.svg     # 10 GB, and growth

- ``cpu_seconds_per_million_records``, ``duckdb_ratio``: of the first size, in processor time.
- ``growth_2m_to_20m``: processor time of the last size by that of the first. Only with several sizes.
- ``peak_memory_gb``: the most that all processes of the analysis had in memory together, of the largest size.

``--json`` also says where the processor time of the analysis went (``rove_cpu_parts_s``): its own process,
the JVM, the JVM's compilers and collector, and other processes, which are Spark's Python workers.

A record is a line of telemetry. Ground truth, half of the bytes, is read and written too but not counted.
DuckDB's part does less in this: it judges lines only as clean data needs it, corrects no clocks, and computes
no series for the report. Metrics of the product that it lacks are listed as ``left_out``.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.analysing.agreement import Agreement, compare
from benchmarks.analysing.copies import Copies, Original, make_copies
from benchmarks.analysing.curve import draw
from benchmarks.analysing.measuring import Cost, Failed, measure
from benchmarks.analysing.patterns import PATTERNS, ROOT, perform

RECORDS = 2_000_000
TIMEOUT_S = 4 * 3600.0
BYTES_PER_RECORD = 1500
"""What a record takes on disk at most, with ground truth, tables and what Spark spills."""
HEADROOM_BYTES = 2 * 2**30


class Step(NamedTuple):
    """One size. ``duckdb`` and ``agreement``: only of the first."""

    copies: Copies
    rove: Cost
    duckdb: Cost | None = None
    agreement: Agreement | None = None


def take_step(originals: Sequence[Original], records: int, folder: Path, against_duckdb: bool) -> Step:
    shutil.rmtree(folder, ignore_errors=True)
    copies = make_copies(originals, folder / "runs", records)
    _say(f"{copies.runs} runs, {copies.records:,} records, {copies.bytes / 2**30:.2f} GiB")
    rove = _analysed("rove", folder, str(copies.sweep))
    if not against_duckdb:
        return Step(copies, rove)
    out = folder / "duckdb"
    duckdb = _analysed("duck", folder, str(copies.sweep), str(out))
    return Step(copies, rove, duckdb, compare(copies.sweep, out))


def _analysed(by: str, folder: Path, *arguments: str) -> Cost:
    command = (sys.executable, "-m", f"benchmarks.analysing.{by}", *arguments)
    cost = measure(command, TIMEOUT_S, folder / f"{by}.log", ROOT)
    parts = ", ".join(f"{name} {used:.1f}" for name, used in cost.parts.items() if used >= 0.05)
    memory = f"{cost.peak_bytes / 1e9:.2f} GB"
    _say(f"  {by}: {cost.cpu_s:.1f} s of processor time ({parts}), {cost.wall_s:.1f} s, {memory}")
    return cost


def figures(steps: Sequence[Step]) -> dict[str, Any]:
    first, last = steps[0], steps[-1]
    per_million = first.rove.cpu_s / first.copies.records * 1e6
    at_scale = last.rove.cpu_s / last.copies.records
    found: dict[str, Any] = {
        "benchmark": "spark_pipeline",
        "cpu_seconds_per_million_records": per_million,
        "duckdb_ratio": first.rove.cpu_s / first.duckdb.cpu_s if first.duckdb else None,
        "peak_memory_gb": max(step.rove.peak_bytes for step in steps) / 1e9,
        "records_per_core_hour": round(3600 / at_scale),
        "core_hours_of_1e9_records": 1e9 * at_scale / 3600,
    }
    if len(steps) > 1:
        growth = last.rove.cpu_s / first.rove.cpu_s
        found |= {"growth_2m_to_20m": growth, "growth_of_records": last.copies.records / first.copies.records}
    if first.agreement:
        found |= {
            "values_compared": first.agreement.compared,
            "differences": list(first.agreement.differences),
            "left_out": list(first.agreement.left_out),
        }
    return found


def _rows(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {
            "runs": step.copies.runs,
            "records": step.copies.records,
            "bytes": step.copies.bytes,
            "rove_cpu_s": step.rove.cpu_s,
            "rove_cpu_parts_s": dict(step.rove.parts),
            "rove_wall_s": step.rove.wall_s,
            "rove_peak_gb": step.rove.peak_bytes / 1e9,
            "duckdb_cpu_s": step.duckdb.cpu_s if step.duckdb else None,
            "duckdb_peak_gb": step.duckdb.peak_bytes / 1e9 if step.duckdb else None,
        }
        for step in steps
    ]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _count(text: str) -> int:
    value = int(text.replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description="spark_pipeline: what the analysis costs, beside DuckDB")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--records", type=_count, nargs="+", default=[RECORDS], help="sizes, smallest first")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="work here and keep all; real runs that are here are used again",
    )
    parser.add_argument("--curve", type=Path, metavar="SVG", help="draw cost against records")
    arguments = parser.parse_args()
    sizes = sorted(set(arguments.records))
    with TemporaryDirectory(prefix="rove-pipeline-") as temporary:
        folder: Path = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        needed, free = sizes[-1] * BYTES_PER_RECORD + HEADROOM_BYTES, shutil.disk_usage(folder).free
        if free < needed:
            parser.error(
                f"{sizes[-1]:,} records need {needed / 1e9:.0f} GB of disk, and {folder} has "
                f"{free / 1e9:.0f} GB: use --keep DIR on a larger disk, or fewer --records"
            )
        steps: list[Step] = []
        try:
            originals = [Original(each.name, each.weight, perform(each, folder)) for each in PATTERNS]
            _analysed("rove", folder, str(originals[0].directory))
            for size in sizes:
                steps.append(take_step(originals, size, folder / str(size), against_duckdb=not steps))
                if not arguments.keep:
                    shutil.rmtree(folder / str(size))
        except Failed as error:
            raise SystemExit(str(error)) from None
    found = figures(steps)
    if arguments.curve:
        draw(_rows(steps), arguments.curve)
    if arguments.json:
        print(json.dumps({**found, "rows": _rows(steps)}))
    else:
        for name, value in found.items():
            print(f"{name:<34}{value:,.3f}" if isinstance(value, float) else f"{name:<34}{value}")
    return 1 if found.get("differences") else 0


if __name__ == "__main__":
    sys.exit(main())
