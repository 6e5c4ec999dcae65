"""From telemetry records to tables: each function is one table, a transformation without input or output.

``records`` are telemetry lines with the columns of ``schemas.RAW``, each ``(run, node, boot, seq)`` once and
told tuple by tuple; ``runs`` is the ``runs`` table.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# A tuple that was on a link this shortly before the end may still have arrived: streams under back-pressure
# hold tuples for seconds. It then counts as in flight, neither delivered nor lost.
GRACE_NS = 10 * 10**9

DELIVERED = "delivered"
DROPPED = "dropped:"
IN_FLIGHT = "in_flight_at_end"
LOST = "lost_in_transit"
# An operator had nothing to say about it; a window or a join made something new of it: both are as intended.
FILTERED = "filtered"
ABSORBED = "absorbed"
SET_ASIDE = (FILTERED, ABSORBED)
LINK_FAILED = "link_failed"


def _is(kind: str) -> Column:
    return F.col("kind") == kind


def in_window(t_ns: str) -> Column:
    inside = (F.col(t_ns) >= F.col("measure_from_ns")) & (F.col(t_ns) < F.col("measure_until_ns"))
    return F.coalesce(inside, F.lit(False))


def windows(runs: DataFrame) -> DataFrame:
    return F.broadcast(runs.select("run", "measure_from_ns", "measure_until_ns", "ended_ns"))


def tuple_by_tuple(records: DataFrame) -> DataFrame:
    """A record of several tuples as one for each, with its share of what is told of all together."""
    count = F.greatest(F.col("tuples"), F.lit(1))  # which looks past null
    place = F.col("place")
    alike = (F.col("size") / count).cast("long")
    return (
        records.withColumn("place", F.explode(F.sequence(F.lit(0), (count - 1).cast("int"))))
        .withColumns(
            {
                "tau": F.col("tau") + place,
                "size": F.coalesce(F.get("sizes", place), alike),
                "took_ns": (F.col("took_ns") / count).cast("long"),
                "born_ns": F.col("born_ns") + F.coalesce(F.get("births", place), F.lit(0)),
            }
        )
        .drop("tuples", "sizes", "births", "place")
    )


def nodes(lines: DataFrame, corrupt: DataFrame) -> DataFrame:
    """``lines`` still has duplicates; ``corrupt`` counts unreadable lines per boot."""
    boots = lines.groupBy("run", "node", "boot").agg(
        F.count_distinct("seq").alias("records"),
        (F.count("*") - F.count_distinct("seq")).alias("duplicates"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
        F.min("t_ns").alias("first_ns"),
        F.max("t_ns").alias("last_ns"),
        F.max(_is("agent_start")).alias("started"),
        F.max(_is("agent_stop")).alias("stopped"),
        F.max(F.when(_is("agent_stop"), F.col("reason"))).alias("stop_reason"),
    )
    counts = ("records", "duplicates", "corrupt_lines")
    flags = ("started", "stopped")
    # seq counts from 0, so what is missing at the front shows as well.
    missing = F.coalesce(F.col("last_seq") + 1 - F.col("records"), F.lit(0))
    return (
        boots.join(corrupt, ["run", "node", "boot"], "full")
        .withColumns({name: F.coalesce(F.col(name), F.lit(0)) for name in counts})
        .withColumns({name: F.coalesce(F.col(name), F.lit(False)) for name in flags})
        .withColumn("missing", missing)
        .withColumn("complete", F.col("started") & F.col("stopped") & (F.col("missing") == 0))
    )


def runs(described: DataFrame, nodes: DataFrame) -> DataFrame:
    totals = nodes.groupBy("run").agg(
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("ended_ns"),
        *(F.sum(name).alias(name) for name in ("records", "duplicates", "corrupt_lines")),
    )
    return described.join(totals, "run", "left").fillna(0, ["records", "duplicates", "corrupt_lines"])


def hops(records: DataFrame) -> DataFrame:
    sent = _is("tuple_sent")
    ends = records.where(sent | _is("tuple_received")).select(
        "run",
        "origin",
        "tau",
        F.when(sent, F.col("replica")).otherwise(F.col("sender")).alias("sender"),
        F.when(sent, F.col("to")).otherwise(F.col("replica")).alias("receiver"),
        F.when(sent, F.col("t_ns")).alias("sent_ns"),
        F.when(~sent, F.col("t_ns")).alias("received_ns"),
        "size",
    )
    return ends.groupBy("run", "origin", "tau", "sender", "receiver").agg(
        F.min("sent_ns").alias("sent_ns"),
        F.min("received_ns").alias("received_ns"),
        F.count("sent_ns").alias("sends"),
        F.count("received_ns").alias("receptions"),
        F.max("size").alias("size"),
    )


def tuples(records: DataFrame, hops: DataFrame, nodes: DataFrame, runs: DataFrame) -> DataFrame:
    """What became of each tuple. In order of precedence:

    ``delivered``; ``dropped:<reason>`` (the last reason); ``filtered`` or ``absorbed``, which are no losses;
    then by where it was last: on a link that never brought it, it is ``in_flight_at_end`` if it was sent
    within ``GRACE_NS`` of the end, else ``lost_in_transit``; held by a replica, it is ``in_flight_at_end``
    unless that agent died with it.
    """
    at_sink = F.when(_is("tuple_delivered"), F.struct("t_ns", "size", "replica"))
    is_loss = ~F.col("reason").isin(*SET_ASIDE)
    # What a link had under way when it failed may have arrived all the same: any other word outweighs this.
    weight = F.when(F.col("reason") == LINK_FAILED, 0).when(is_loss, 2).otherwise(1)
    drop = F.struct(weight.alias("weight"), is_loss.alias("is_loss"), "t_ns", "seq", "reason", "replica")
    sink_operator = F.when(_is("tuple_delivered"), F.substring_index("replica", "/", 1))
    lives = (
        records.where(F.col("kind").startswith("tuple_"))
        .groupBy("run", "origin", "tau")
        .agg(
            F.min(F.when(_is("tuple_emitted"), F.col("t_ns"))).alias("emitted_ns"),
            F.max(F.when(_is("tuple_emitted"), F.col("size"))).alias("size"),
            F.min("born_ns").alias("born_ns"),
            F.min(at_sink).alias("arrival"),
            F.count(at_sink).alias("arrivals"),
            F.size(F.collect_set(sink_operator)).alias("sinks"),
            F.max(F.when(_is("tuple_dropped"), drop)).alias("drop"),
            F.max(F.struct("t_ns", "seq", "node", "boot")).alias("last"),
        )
        .withColumns({"node": F.col("last.node"), "boot": F.col("last.boot"), "last_ns": F.col("last.t_ns")})
    )
    on_links = hops.groupBy("run", "origin", "tau").agg(
        F.max(F.when(F.col("received_ns").isNull(), F.col("sent_ns"))).alias("unreceived_ns"),
        F.max("received_ns").alias("received_ns"),
    )
    ended_in_order = nodes.select("run", "node", "boot", F.col("stopped").alias("holder_stopped"))
    on_a_link = F.col("unreceived_ns") >= F.coalesce(F.col("received_ns"), F.col("unreceived_ns"))
    # What failed in an operator is told in full by the reason: there may be as many as tuples.
    what = F.substring_index("drop.reason", ":", 1)
    fate = (
        F.when(F.col("arrival").isNotNull(), DELIVERED)
        .when(F.col("drop").isNotNull() & ~F.col("drop.is_loss"), F.col("drop.reason"))
        .when(F.col("drop").isNotNull(), F.concat(F.lit(DROPPED), what))
        .when(on_a_link & (F.col("unreceived_ns") >= F.col("ended_ns") - GRACE_NS), IN_FLIGHT)
        .when(on_a_link, LOST)
        .when(F.col("holder_stopped"), IN_FLIGHT)
        .otherwise(LOST)
    )
    return (
        lives.join(on_links, ["run", "origin", "tau"], "left")
        .join(ended_in_order, ["run", "node", "boot"], "left")
        .join(windows(runs), "run")
        .withColumns(
            {
                "born_ns": F.coalesce("born_ns", "emitted_ns"),
                "delivered_ns": F.col("arrival.t_ns"),
                "delivered_size": F.col("arrival.size"),
                "delivered_at": F.col("arrival.replica"),
                "delivered": F.col("arrival").isNotNull(),
                "duplicates": F.col("arrivals") - F.col("sinks"),
                "drop_reason": F.col("drop.reason"),
                "dropped_at": F.col("drop.replica"),
                "fate": fate,
            }
        )
        .withColumns(
            {
                "latency_ns": F.col("delivered_ns") - F.col("born_ns"),
                "in_window": in_window("born_ns"),
            }
        )
    )


def switches(records: DataFrame, runs: DataFrame) -> DataFrame:
    """``changed`` looks past outages: a → none → a is no change of replica, a → none → b is one."""
    earlier = (
        Window.partitionBy("run", "replica", "downstream")
        .orderBy("t_ns", "boot", "seq")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    used_before = F.coalesce("old", F.last("new", ignorenulls=True).over(earlier))
    changed = F.coalesce(F.col("new") != used_before, F.lit(False))
    return (
        records.where(_is("route_switch"))
        .withColumn("changed", changed)
        .join(windows(runs), "run")
        .withColumn("in_window", in_window("t_ns"))
    )


def costs(records: DataFrame) -> DataFrame:
    return records.where(_is("link_cost"))


def overhead(records: DataFrame) -> DataFrame:
    return records.where(_is("routing_overhead"))


def operator_faults(records: DataFrame) -> DataFrame:
    return records.where(_is("operator_fault"))


def links_truth(changes: DataFrame) -> DataFrame:
    following = Window.partitionBy("run", "src", "dst").orderBy("t_ns", "up")
    return (
        changes.withColumn("down_ns", F.lead("t_ns").over(following))
        .where("up")
        .withColumnRenamed("t_ns", "up_ns")
    )
