"""Computes the metrics of tuples: loss, throughput, latency, of an application and of each of its sinks.

``metrics`` declares and defines them. They cover tuples born in the measured window, whenever these arrived.
A tuple counts once for every sink that its stream leads to.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.tuple_table import (
    DELIVERED,
    IN_FLIGHT,
    NEVER_EMITTED,
    SET_ASIDE,
    SHED,
)
from orchestrator.results.arrow import SUM as ARROW_SUM
from orchestrator.results.arrow import summed_up, whole, with_times
from orchestrator.results.contribution import Rows
from orchestrator.results.spark import SUM, Reading, Subject, inside, over_window, rounded

# The distribution of latency is stored at every half percent, which includes the reported percentiles.
QUANTILES = 200

Row = dict[str, Any]
Figures = dict[str, Any]


def _by_fate(tuples: DataFrame) -> DataFrame:
    """Sums up tuples by sink and fate, those born in the window apart: all figures that add up, in one pass.

    ``made`` are those that sources made: their streams have the names of replicas, those of windows of
    operators.
    """
    # As texts, because every part of an expression would be a call of its own to the JVM.
    arrived = inside("delivered_ns")
    first = "struct(delivered_ns, origin, tau, delivered_size)"
    sums = (
        "count(*) as tuples",
        "count_if(contains(origin, '/')) as made",
        "sum(duplicates) as duplicates",
        f"sum(cast(latency_ns as {SUM})) as latency_sum_ns",
        f"{_quantiles('case when in_window then latency_ns end')} as latency_quantiles_ns",
        f"count_if({arrived}) as arrivals",
        f"sum(case when {arrived} then cast(delivered_size as {SUM}) end) as bytes",
        f"min(case when {arrived} then {first} end) as first",
        f"max(case when {arrived} then delivered_ns end) as last_ns",
    )
    return tuples.groupBy("run", "app", "sink", "fate", "in_window").agg(*map(F.expr, sums))


def _quantiles(latency_ns: str) -> str:
    shares = ", ".join(f"{step / QUANTILES!r}D" for step in range(QUANTILES + 1))
    return f"percentile({latency_ns}, array({shares}))"


def _distinct(tuples: DataFrame) -> DataFrame:
    """Counts tuples once: with several sinks, a tuple has a row for each."""
    each = tuples.where("in_window").select("run", "app", "origin", "tau").distinct()
    made = F.count_if(F.col("origin").contains("/"))
    return each.groupBy("run", "app").agg(F.count("*").alias("emitted"), made.alias("made"))


def _per_second(reading: Reading) -> pa.Table:
    """Counts what was delivered in each second of the run."""
    times = reading.times

    def counted(tuples: pa.Table) -> pa.Table:
        found = with_times(tuples.filter(tuples["delivered"]), times, ("zero_ns",))
        seconds = np.floor(pc.subtract(found["delivered_ns"], found["zero_ns"]).to_numpy() / 1e9)
        rows = {"run": found["run"], "app": found["app"], "second": pa.array(seconds.astype(np.int64))}
        sums = {"tuples": pa.repeat(1, found.num_rows), "bytes": found["delivered_size"].cast(ARROW_SUM)}
        return summed_up(pa.table({**rows, **sums}), ["run", "app", "second"], ["tuples", "bytes"])

    only = ("run", "app", "delivered", "delivered_ns", "delivered_size")
    return summed_up(reading.columns("tuples", counted, only), ["run", "app", "second"], ["tuples", "bytes"])


def frames(reading: Reading) -> Mapping[str, DataFrame | pa.Table]:
    tuples = reading.table("tuples")
    several = [
        run.run
        for run in reading.runs
        if any(len(app.plan.query.sinks()) > 1 for app in run.apps.values() if app.kind == "query")
    ]
    found = {
        "by fate": _by_fate(reading.timed(tuples)),
        "deliveries": _per_second(reading),
    }
    if several:
        of_several = tuples.where(F.col("run").isin(several))
        latencies = of_several.where("in_window").groupBy("run", "app")
        found |= {
            "of all sinks": latencies.agg(F.expr(f"{_quantiles('latency_ns')} as latency_quantiles_ns")),
            "distinct": _distinct(of_several),
        }
    return found


class Summed(NamedTuple):
    """What ``_by_fate`` has of some sinks: tuples born in the window, and arrivals in it."""

    fates: dict[str, int]
    duplicates: int
    latency_sum_ns: int
    latency_quantiles_ns: list[float]
    arrivals: int
    bytes: int
    first: Row | None
    last_ns: int

    @property
    def owed(self) -> int:
        return sum(self.fates.values())

    @property
    def delivered(self) -> int:
        return self.fates.get(DELIVERED, 0)


def summed(rows: Rows, quantiles_ns: Sequence[float] | None) -> Summed:
    """Adds up rows of ``_by_fate``. ``quantiles_ns``: of the latency at several sinks; they do not add up."""
    born = [row for row in rows if row["in_window"]]
    fates: dict[str, int] = {}
    for row in sorted(born, key=itemgetter("fate")):
        fates[row["fate"]] = fates.get(row["fate"], 0) + row["tuples"]
    if quantiles_ns is None:
        known = (row["latency_quantiles_ns"] for row in born if row["fate"] == DELIVERED)
        quantiles_ns = next((each for each in known if each is not None), ())
    arrived = [row for row in rows if row["arrivals"]]
    return Summed(
        fates,
        sum(row["duplicates"] for row in born),
        sum(row["latency_sum_ns"] or 0 for row in born),
        list(quantiles_ns),
        sum(row["arrivals"] for row in arrived),
        sum(row["bytes"] or 0 for row in arrived),
        min((row["first"] for row in arrived), key=_place, default=None),
        max((row["last_ns"] for row in arrived), default=0),
    )


def _place(first: Row) -> tuple[Any, ...]:
    size = first["delivered_size"]
    return first["delivered_ns"], first["origin"], first["tau"], size is not None, size or 0


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    assert subject.app is not None
    sinks = subject.app.plan.query.sinks()
    by_fate = rows["by fate"]
    of_all = next((row["latency_quantiles_ns"] for row in rows["of all sinks"]), None)
    total = summed(by_fate, (of_all or ()) if len(sinks) > 1 else None)
    made = sum(row["made"] for row in by_fate if row["in_window"])
    counted: Figures = {}
    if len(sinks) > 1:
        distinct = next(iter(rows["distinct"]), {"emitted": 0, "made": 0})
        made = distinct["made"]
        counted = {"emitted": distinct["emitted"], "sinks": _sinks(subject, sinks, by_fate)}
    per_second = sorted(rows["deliveries"], key=itemgetter("second"))
    return {
        **tuple_figures(total),
        **arrival_figures(total, subject.window_ns),
        "offered_fps": over_window(made, subject.window_ns),
        **latency_figures(total),
        **counted,
        "latency_quantiles_s": quantiles_s(total),
        "deliveries": [[row["second"], row["tuples"], whole(row["bytes"])] for row in per_second],
        NEVER_EMITTED: sum(row["tuples"] for row in by_fate if row["fate"] == NEVER_EMITTED),
    }


def _sinks(subject: Subject, names: Sequence[str], by_fate: Rows) -> Figures:
    """Returns the figures of every sink, for a query with several sinks; there ``emitted`` counts tuples, not
    expected deliveries.
    """
    sinks = {}
    for sink in names:
        found = summed([row for row in by_fate if row["sink"] == sink], None)
        figures = tuple_figures(found)
        sinks[sink] = {
            "owed": figures.pop("emitted"),
            **figures,
            **arrival_figures(found, subject.window_ns),
            **latency_figures(found),
        }
    return sinks


def tuple_figures(found: Summed) -> Figures:
    fates = found.fates
    in_flight = fates.get(IN_FLIGHT, 0)
    due = found.owed - in_flight - sum(fates.get(name, 0) for name in SET_ASIDE)
    lost, shed = due - found.delivered, fates.get(SHED, 0)
    return {
        "emitted": found.owed,
        "delivered": found.delivered,
        "duplicates": found.duplicates,
        "in_flight_at_end": in_flight,
        "lost": lost,
        "loss_ratio": rounded(lost / due) if due > 0 else None,
        "shed": shed,
        "shed_ratio": rounded(shed / due) if due > 0 else None,
        "network_loss_ratio": rounded((lost - shed) / (due - shed)) if due > shed else None,
        "fates": fates,
    }


def arrival_figures(found: Summed, window_ns: int) -> Figures:
    fps = kbps = 0.0
    if found.first and (span_ns := found.last_ns - found.first["delivered_ns"]) > 0:
        fps = (found.arrivals - 1) * 1e9 / span_ns
        kbps = (found.bytes - found.first["delivered_size"]) * 8 * 1e6 / span_ns
    return {
        "throughput_fps": rounded(fps),
        "throughput_kbps": rounded(kbps),
        "goodput_fps": over_window(found.arrivals, window_ns),
        "goodput_kbps": over_window(found.bytes * 8 / 1e3, window_ns),
    }


def latency_figures(found: Summed) -> Figures:
    quantiles = quantiles_s(found)
    if not quantiles:
        return {f"latency_{name}_s": None for name in ("mean", "p50", "p95", "p99", "max")}
    return {
        "latency_mean_s": rounded(found.latency_sum_ns / found.delivered / 1e9),
        "latency_p50_s": quantiles[QUANTILES * 50 // 100],
        "latency_p95_s": quantiles[QUANTILES * 95 // 100],
        "latency_p99_s": quantiles[QUANTILES * 99 // 100],
        "latency_max_s": quantiles[QUANTILES],
    }


def quantiles_s(found: Summed) -> list[float]:
    return [rounded(value / 1e9) for value in found.latency_quantiles_ns] if found.delivered else []
