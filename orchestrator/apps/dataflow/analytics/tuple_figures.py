"""Computes the metrics of tuples: loss, throughput, latency, of an application and of each of its sinks.

``metrics`` declares and defines them. They cover tuples born in the measured window, whenever these arrived.
A tuple counts once for every sink that its stream leads to.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.tuple_table import IN_FLIGHT, NEVER_EMITTED, SET_ASIDE, SHED
from orchestrator.results.contribution import Rows
from orchestrator.results.spark import SUM, Reading, Subject, over_window, rounded

# The distribution of latency is stored at every half percent, which includes the reported percentiles.
QUANTILES = 200

Row = dict[str, Any]
Figures = dict[str, Any]


def born_in_window(tuples: DataFrame, *by: str) -> DataFrame:
    shares = F.array(*(F.lit(step / QUANTILES) for step in range(QUANTILES + 1)))
    return (
        tuples.where("in_window")
        .groupBy("run", "app", *by)
        .agg(
            F.count("*").alias("owed"),
            F.count(F.when(F.col("delivered"), True)).alias("delivered"),
            F.sum("duplicates").alias("duplicates"),
            F.sum(F.col("latency_ns").cast(SUM)).alias("latency_sum_ns"),
            F.percentile("latency_ns", shares).alias("latency_quantiles_ns"),
        )
    )


def distinct(tuples: DataFrame) -> DataFrame:
    """Counts tuples once: with several sinks, a tuple has a row for each."""
    distinct = F.count_distinct("origin", "tau")
    return tuples.where("in_window").groupBy("run", "app").agg(distinct.alias("emitted"))


def offered(tuples: DataFrame) -> DataFrame:
    """Counts what sources made: their streams have the names of replicas, those of windows of operators."""
    made = tuples.where(F.col("in_window") & F.col("origin").contains("/"))
    return made.groupBy("run", "app").agg(F.count_distinct("origin", "tau").alias("tuples"))


def unfounded(tuples: DataFrame) -> DataFrame:
    found = tuples.where(F.col("fate") == NEVER_EMITTED)
    return found.groupBy("run", "app").agg(F.count("*").alias("tuples"))


def inside(t_ns: str) -> str:
    return f"{t_ns} >= measure_from_ns and {t_ns} < measure_until_ns"


def arrived_in_window(tuples: DataFrame, windows: DataFrame, *by: str) -> DataFrame:
    return (
        tuples.join(windows, "run")
        .where(inside("delivered_ns"))
        .groupBy("run", "app", *by)
        .agg(
            F.count("*").alias("arrivals"),
            F.sum(F.col("delivered_size").cast(SUM)).alias("bytes"),
            F.min(F.struct("delivered_ns", "origin", "tau", "delivered_size")).alias("first"),
            F.max("delivered_ns").alias("last_ns"),
        )
    )


def fates_of(tuples: DataFrame, *by: str) -> DataFrame:
    return tuples.where("in_window").groupBy("run", "app", *by, "fate").agg(F.count("*").alias("tuples"))


def _fates(counted: Rows) -> dict[str, int]:
    return {row["fate"]: row["tuples"] for row in sorted(counted, key=itemgetter("fate"))}


def _per_second(tuples: DataFrame) -> DataFrame:
    second = F.floor((F.col("delivered_ns") - F.col("zero_ns")) / 1e9)
    return (
        tuples.where("delivered")
        .groupBy("run", "app", second.alias("second"))
        .agg(F.count("*").alias("tuples"), F.sum(F.col("delivered_size").cast(SUM)).alias("bytes"))
    )


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    tuples, windows = reading.table("tuples"), reading.windows
    several = [
        run.run
        for run in reading.runs
        if any(len(app.plan.query.sinks()) > 1 for app in run.apps.values() if app.kind == "query")
    ]
    found = {
        "unfounded": unfounded(tuples),
        "offered": offered(tuples),
        "born": born_in_window(tuples),
        "arrived": arrived_in_window(tuples, windows),
        "fates": fates_of(tuples),
        "deliveries": _per_second(tuples.join(windows, "run")),
    }
    if several:
        of_several = tuples.where(F.col("run").isin(several))
        found |= {
            "born at": born_in_window(of_several, "sink"),
            "arrived at": arrived_in_window(of_several, windows, "sink"),
            "fates at": fates_of(of_several, "sink"),
            "distinct": distinct(of_several),
        }
    return found


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    born, arrived = next(iter(rows["born"]), None), next(iter(rows["arrived"]), None)
    never, made = (next(iter(rows[name]), {"tuples": 0})["tuples"] for name in ("unfounded", "offered"))
    per_second = sorted(rows["deliveries"], key=itemgetter("second"))
    return {
        **tuple_figures(born, _fates(rows["fates"])),
        **arrival_figures(arrived, subject.window_ns),
        "offered_fps": over_window(made, subject.window_ns),
        **latency_figures(born),
        **_sinks(subject, rows),
        "latency_quantiles_s": quantiles_s(born),
        "deliveries": [[row["second"], row["tuples"], row["bytes"]] for row in per_second],
        NEVER_EMITTED: never,
    }


def _sinks(subject: Subject, rows: Mapping[str, Rows]) -> Figures:
    """Returns the figures of every sink, for a query with several sinks; there ``emitted`` counts tuples, not
    expected deliveries.
    """
    assert subject.app is not None
    names = subject.app.plan.query.sinks()
    if len(names) < 2:
        return {}
    born, arrived = ({row["sink"]: row for row in rows[name]} for name in ("born at", "arrived at"))
    sinks = {}
    for sink in names:
        fates = _fates([row for row in rows["fates at"] if row["sink"] == sink])
        figures = tuple_figures(born.get(sink), fates)
        sinks[sink] = {
            "owed": figures.pop("emitted"),
            **figures,
            **arrival_figures(arrived.get(sink), subject.window_ns),
            **latency_figures(born.get(sink)),
        }
    return {"emitted": next(iter(rows["distinct"]), {"emitted": 0})["emitted"], "sinks": sinks}


def tuple_figures(born: Row | None, fates: dict[str, int]) -> Figures:
    emitted = born["owed"] if born else 0
    delivered = born["delivered"] if born else 0
    in_flight = fates.get(IN_FLIGHT, 0)
    due = emitted - in_flight - sum(fates.get(name, 0) for name in SET_ASIDE)
    lost, shed = due - delivered, fates.get(SHED, 0)
    return {
        "emitted": emitted,
        "delivered": delivered,
        "duplicates": born["duplicates"] if born else 0,
        "in_flight_at_end": in_flight,
        "lost": lost,
        "loss_ratio": rounded(lost / due) if due > 0 else None,
        "shed": shed,
        "shed_ratio": rounded(shed / due) if due > 0 else None,
        "network_loss_ratio": rounded((lost - shed) / (due - shed)) if due > shed else None,
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
        "goodput_fps": over_window(arrivals, window_ns),
        "goodput_kbps": over_window(arrived["bytes"] * 8 / 1e3 if arrived else 0, window_ns),
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
