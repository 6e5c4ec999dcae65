"""What the figures of a report are drawn from: small series per run, computed in Spark over its tables.

Times are in seconds since the first record of the run.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from orchestrator.analytics.connectivity import read_changes
from orchestrator.analytics.gather import gather
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.neighbourhood import moments
from orchestrator.analytics.store import TableStore
from orchestrator.analytics.tables import SUM
from orchestrator.runs.outages import read_outages

MOST_POSITIONS = 150
"""Per node; more samples than that are thinned out."""

MOST_MOMENTS = 200
"""For which neighbours are counted."""

MOST_LINKS = 300
"""Those over which most was sent."""

ORDER = {
    "deliveries": ("run", "second"),
    "routes": ("run", "t_ns", "replica", "downstream"),
    "connectivity": ("run", "from_ns"),
    "positions": ("run", "node", "t_ns"),
    "links": ("run", "rank"),
    "boots": ("run", "node", "boot"),
}

Series = dict[str, Any]


def draw_from(spark: SparkSession, store: TableStore, inputs: Sequence[RunInput]) -> dict[str, Series]:
    names = [run.run for run in inputs]
    clocks = store.read(spark, "runs", names).select(
        "run", "measure_from_ns", "measure_until_ns", F.col("first_ns").alias("zero_ns"), "ended_ns"
    )
    timed = F.broadcast(clocks)
    rows = gather(
        {
            "clocks": clocks,
            "deliveries": _deliveries(store.read(spark, "tuples", names).join(timed, "run")),
            "routes": _routes(store.read(spark, "switches", names).join(timed, "run")),
            "connectivity": _connectivity(store.read(spark, "connectivity", names).join(timed, "run")),
            "positions": _positions(store.read(spark, "positions", names).join(timed, "run")),
            "links": _links(store.read(spark, "deliveries", names)),
            "boots": store.read(spark, "nodes", names).select("run", "node", "boot", "first_ns", "last_ns"),
        }
    )
    for name, order in ORDER.items():
        rows[name].sort(key=itemgetter(*order))
    series: dict[str, Series] = {}
    for row in rows["clocks"]:
        zero = row["zero_ns"] or 0
        series[row["run"]] = {
            "window_s": [_seconds_after(row[name], zero) for name in ("measure_from_ns", "measure_until_ns")],
            "ended_s": _seconds_after(row["ended_ns"], zero),
            "deliveries": [],
            "routes": [],
            "connectivity": [],
            "positions": {},
            "links": [],
            "neighbours": [],
            "boots": {},
            "faults": [],
        }
    for row in rows["deliveries"]:
        series[row["run"]]["deliveries"].append([row["second"], row["tuples"], row["bytes"]])
    for row in rows["routes"]:
        series[row["run"]]["routes"].append([row["t"], row["replica"], row["downstream"], row["new"]])
    for row in rows["connectivity"]:
        series[row["run"]]["connectivity"].append([row["from"], row["until"], row["connected"]])
    for row in rows["positions"]:
        series[row["run"]]["positions"].setdefault(row["node"], []).append([row["x"], row["y"]])
    for row in rows["links"]:
        series[row["run"]]["links"].append([row["attempted"], row["delivered"], row["expected"]])
    of_run = {run.run: run for run in inputs}
    zeros = {row["run"]: row["zero_ns"] or 0 for row in rows["clocks"]}
    for row in rows["boots"]:
        life = [_seconds_after(row[name], zeros[row["run"]]) for name in ("first_ns", "last_ns")]
        if None not in life:
            series[row["run"]]["boots"].setdefault(row["node"], []).append(life)
    for run in inputs:
        series[run.run]["faults"] = _faults(run, zeros[run.run])
    for row in rows["clocks"]:
        nodes = series[row["run"]]["positions"]
        found = _neighbours(of_run[row["run"]], nodes, row["zero_ns"] or 0, row["ended_ns"])
        series[row["run"]]["neighbours"] = found
    return series


def _seconds_after(t_ns: int | None, zero_ns: int) -> float | None:
    return None if t_ns is None else round((t_ns - zero_ns) / 1e9, 3)


def _seconds(t_ns: str) -> Column:
    return F.round((F.col(t_ns) - F.col("zero_ns")) / 1e9, 3)


def _whole_second(t_ns: str) -> Column:
    return F.floor((F.col(t_ns) - F.col("zero_ns")) / 1e9)


def _deliveries(tuples: DataFrame) -> DataFrame:
    return (
        tuples.where("delivered")
        .groupBy("run", _whole_second("delivered_ns").alias("second"))
        .agg(F.count("*").alias("tuples"), F.sum(F.col("delivered_size").cast(SUM)).alias("bytes"))
    )


def _routes(switches: DataFrame) -> DataFrame:
    return switches.select("run", _seconds("t_ns").alias("t"), "replica", "downstream", "new", "t_ns")


def _connectivity(connectivity: DataFrame) -> DataFrame:
    times = (_seconds("from_ns").alias("from"), _seconds("until_ns").alias("until"))
    return connectivity.select("run", *times, "connected", "from_ns")


def _positions(positions: DataFrame) -> DataFrame:
    step = F.greatest(F.ceil((F.col("ended_ns") - F.col("zero_ns")) / (MOST_POSITIONS * 1e9)), F.lit(1))
    thinned = positions.where(_whole_second("t_ns") % step == 0)
    return thinned.select("run", "node", "t_ns", F.round("x", 1).alias("x"), F.round("y", 1).alias("y"))


def _links(deliveries: DataFrame) -> DataFrame:
    """Per directed link over the whole run; what was expected is weighted by what was sent."""
    used = deliveries.groupBy("run", "src", "dst").agg(
        F.sum("attempted").alias("attempted"),
        F.sum("delivered").alias("delivered"),
        F.round(F.sum(F.col("attempted") * F.col("expected")) / F.sum("attempted"), 4).alias("expected"),
    )
    busiest = Window.partitionBy("run").orderBy(F.desc("attempted"), "src", "dst")
    return used.withColumn("rank", F.row_number().over(busiest)).where(F.col("rank") <= MOST_LINKS)


def _faults(run: RunInput, zero_ns: int) -> list[list[Any]]:
    return [
        [what, node, _seconds_after(from_ns, zero_ns), _seconds_after(until_ns, zero_ns)]
        for what, node, from_ns, until_ns in read_outages(run.directory.events)
    ]


def _neighbours(run: RunInput, nodes: Iterable[str], zero_ns: int, ended_ns: int | None) -> list[list[Any]]:
    """Time, mean, least and most neighbours of a node, hops from source to sink; empty without any link."""
    changes = list(read_changes(run.directory.radio / "links.jsonl"))
    if not changes or ended_ns is None:
        return []
    step_ns = 10**9 * max(1, -(-(ended_ns - zero_ns) // (MOST_MOMENTS * 10**9)))
    ends = run.row()
    times_ns = range(zero_ns, ended_ns, step_ns)
    found = moments(changes, nodes, ends["source_nodes"], ends["sink_nodes"], times_ns)
    return [[_seconds_after(m.t_ns, zero_ns), round(m.mean, 3), m.least, m.most, m.hops] for m in found]
