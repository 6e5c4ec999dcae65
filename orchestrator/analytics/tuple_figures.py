"""Figures that come from the ``tuples`` table: loss, throughput, latency, of a run and of each of its sinks.

``metrics`` says what each of them means.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.analytics.gather import Rows
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.tables import IN_FLIGHT, NEVER_EMITTED, SET_ASIDE, SUM

# The distribution of latency is kept at every half percent; the percentiles reported are among them.
QUANTILES = 200

Row = dict[str, Any]
Figures = dict[str, Any]


def born_in_window(tuples: DataFrame, *by: str) -> DataFrame:
    shares = F.array(*(F.lit(step / QUANTILES) for step in range(QUANTILES + 1)))
    return (
        tuples.where("in_window")
        .groupBy("run", *by)
        .agg(
            F.count("*").alias("owed"),
            F.count(F.when(F.col("delivered"), True)).alias("delivered"),
            F.sum("duplicates").alias("duplicates"),
            F.sum(F.col("latency_ns").cast(SUM)).alias("latency_sum_ns"),
            F.percentile("latency_ns", shares).alias("latency_quantiles_ns"),
        )
    )


def distinct(tuples: DataFrame) -> DataFrame:
    """With several sinks there is a row of a tuple for each."""
    distinct = F.count_distinct("origin", "tau")
    return tuples.where("in_window").groupBy("run").agg(distinct.alias("emitted"))


def unfounded(tuples: DataFrame) -> DataFrame:
    found = tuples.where(F.col("fate") == NEVER_EMITTED)
    return found.groupBy("run").agg(F.count("*").alias("tuples"))


def inside(t_ns: str) -> str:
    return f"{t_ns} >= measure_from_ns and {t_ns} < measure_until_ns"


def arrived_in_window(tuples: DataFrame, windows: DataFrame, *by: str) -> DataFrame:
    return (
        tuples.join(windows, "run")
        .where(inside("delivered_ns"))
        .groupBy("run", *by)
        .agg(
            F.count("*").alias("arrivals"),
            F.sum(F.col("delivered_size").cast(SUM)).alias("bytes"),
            F.min(F.struct("delivered_ns", "origin", "tau", "delivered_size")).alias("first"),
            F.max("delivered_ns").alias("last_ns"),
        )
    )


def fates_of(tuples: DataFrame, *by: str) -> DataFrame:
    return tuples.where("in_window").groupBy("run", *by, "fate").agg(F.count("*").alias("tuples"))


def counted_fates(counted: Rows, *by: str) -> dict[tuple[str, ...], dict[str, int]]:
    fates: dict[tuple[str, ...], dict[str, int]] = {}
    for row in sorted(counted, key=lambda row: (row["run"], row["fate"])):
        fates.setdefault(tuple(row[name] for name in by), {})[row["fate"]] = row["tuples"]
    return fates


def by_sink(rows: dict[str, Rows], runs: Sequence[RunInput]) -> dict[str, Figures]:
    """By run: ``emitted``, which counts tuples and not what they owe, and the figures of every sink."""
    if not runs:
        return {}
    born, arrived = (
        {(row["run"], row["sink"]): row for row in rows[name]} for name in ("born at", "arrived at")
    )
    fates = counted_fates(rows["fates at"], "run", "sink")
    distinct = {row["run"]: row["emitted"] for row in rows["distinct"]}
    found: dict[str, Figures] = {}
    for run in runs:
        sinks = {}
        for sink in run.plan.query.sinks():
            key = run.run, sink
            figures = tuple_figures(born.get(key), fates.get(key, {}))
            sinks[sink] = {
                "owed": figures.pop("emitted"),
                **figures,
                **arrival_figures(arrived.get(key), window_of(run)),
                **latency_figures(born.get(key)),
            }
        found[run.run] = {"emitted": distinct.get(run.run, 0), "sinks": sinks}
    return found


def tuple_figures(born: Row | None, fates: dict[str, int]) -> Figures:
    emitted = born["owed"] if born else 0
    delivered = born["delivered"] if born else 0
    in_flight = fates.get(IN_FLIGHT, 0)
    due = emitted - in_flight - sum(fates.get(name, 0) for name in SET_ASIDE)
    lost = due - delivered
    return {
        "emitted": emitted,
        "delivered": delivered,
        "duplicates": born["duplicates"] if born else 0,
        "in_flight_at_end": in_flight,
        "lost": lost,
        "loss_ratio": rounded(lost / due) if due > 0 else None,
        "fates": fates,
    }


def arrival_figures(arrived: Row | None, window_ns: int) -> Figures:
    arrivals = arrived["arrivals"] if arrived else 0
    fps = kbps = 0.0
    if arrived and (span_ns := arrived["last_ns"] - arrived["first"]["delivered_ns"]) > 0:
        fps = (arrivals - 1) * 1e9 / span_ns
        kbps = (arrived["bytes"] - arrived["first"]["delivered_size"]) * 8 * 1e6 / span_ns
    return {
        "throughput_fps": rounded(fps),
        "throughput_kbps": rounded(kbps),
        "goodput_fps": rounded(arrivals * 1e9 / window_ns) if window_ns else 0.0,
    }


def latency_figures(born: Row | None) -> Figures:
    quantiles = quantiles_s(born)
    if born is None or not quantiles:
        return {f"latency_{name}_s": None for name in ("mean", "p50", "p95", "p99", "max")}
    return {
        "latency_mean_s": rounded(born["latency_sum_ns"] / born["delivered"] / 1e9),
        "latency_p50_s": quantiles[QUANTILES * 50 // 100],
        "latency_p95_s": quantiles[QUANTILES * 95 // 100],
        "latency_p99_s": quantiles[QUANTILES * 99 // 100],
        "latency_max_s": quantiles[QUANTILES],
    }


def quantiles_s(born: Row | None) -> list[float]:
    if born is None or not born["delivered"]:
        return []
    return [rounded(value / 1e9) for value in born["latency_quantiles_ns"]]


def window_of(run: RunInput) -> int:
    begin, end = run.manifest.get("measure_from_ns"), run.manifest.get("measure_until_ns")
    return max(end - begin, 0) if begin is not None and end is not None else 0


def rounded(value: float) -> float:
    return round(value, 9)
