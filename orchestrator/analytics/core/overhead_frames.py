"""Computes the bit/s of routing daemons in Spark, from samples of their counters."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest, Reading


def overhead(ingest: Ingest) -> AsRead:
    """Returns the table."""
    return AsRead("routing_overhead")


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    return {"overhead": _rates(reading.timed(reading.table("overhead")))}


def _rates(samples: DataFrame) -> DataFrame:
    """Returns the bit/s of each kind of message, the mean over nodes;
    a node that never sent one counts as 0.
    """
    spans = (
        samples.selectExpr(
            "run",
            "node",
            "message",
            "t_ns",
            *(f"{_grown(f'{name}_bytes')} as {name}" for name in _COUNTERS),
            f"coalesce(max(case when t_ns <= measure_from_ns then t_ns end) over {_COUNTER}, "
            f"min(t_ns) over {_COUNTER}) as begin_ns",
            f"coalesce(min(case when t_ns >= measure_until_ns then t_ns end) over {_COUNTER}, "
            f"max(t_ns) over {_COUNTER}) as end_ns",
        )
        .where("t_ns > begin_ns and t_ns <= end_ns")
        .groupBy("run", "node", "message", F.expr("(end_ns - begin_ns) / 1e9D as seconds"))
        .agg(*(F.expr(f"sum(cast({name} as double)) as {name}") for name in _COUNTERS))
    )
    nodes = spans.groupBy("run").agg(F.expr("count(distinct node) as nodes"))
    rates = spans.groupBy("run", "message").agg(*(F.expr(f"{_rate(name)} as {name}") for name in _COUNTERS))
    return rates.join(nodes, "run")


# As texts, because every part of an expression would be a call of its own to the JVM.
_COUNTERS = ("sent", "forwarded")
_COUNTER = "(partition by run, node, message)"


def _grown(name: str) -> str:
    """Returns the growth since the sample before. A restarted daemon counts from 0 again."""
    earlier = f"lag({name}) over (partition by run, node, message order by t_ns)"
    return f"case when {name} >= {earlier} then {name} - {earlier} else {name} end"


def _rate(name: str) -> str:
    # Sorted first, because sums of fractions depend on their order.
    return f"aggregate(array_sort(collect_list(8 * {name} / seconds)), 0D, (total, each) -> total + each)"
