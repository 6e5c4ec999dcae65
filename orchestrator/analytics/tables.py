"""From telemetry records to tables: each function is one table, a transformation without input or output.

``records`` are telemetry lines with the columns of ``schemas.RAW``, each ``(run, node, boot, seq)`` once and
told tuple by tuple; ``runs`` is the ``runs`` table.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from node_agent.apps.dataflow.belief import ABSORBED, FILTERED
from node_agent.apps.dataflow.events import TUPLE_KINDS
from node_agent.model.telemetry import KILLED
from node_agent.telemetry.kinds import tag_of

# A tuple that was on a link this shortly before the end may still have arrived: streams under back-pressure
# hold tuples for seconds. It then counts as in flight, neither delivered nor lost.
GRACE_NS = 10 * 10**9

DELIVERED = "delivered"
DROPPED = "dropped:"
IN_FLIGHT = "in_flight_at_end"
LOST = "lost_in_transit"
# An operator had nothing to say about it; a window or a join made something new of it: both are as intended.
SET_ASIDE = (FILTERED, ABSORBED)
LINK_FAILED = "link_failed"
# Delivered, it is said, but whoever makes the stream has a whole log and never emitted it.
NEVER_EMITTED = "never_emitted"
SUM = "decimal(38,0)"
"""For sums of what a node says: they must not overflow whatever it says."""


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


def nodes(lines: DataFrame, unread: DataFrame) -> DataFrame:
    """``lines`` are all there are; ``unread`` counts those, per boot, that Spark did not get to see."""
    believed = ~F.col("corrupt") & ~F.col("is_refused")
    seq = F.when(believed, F.col("seq"))
    present = F.when(~F.col("corrupt"), F.col("seq"))
    started, stopped = believed & _is("agent_start"), believed & _is("agent_stop")
    boots = lines.groupBy("run", "node", "boot").agg(
        F.count_distinct(seq).alias("records"),
        (F.count(seq) - F.count_distinct(seq)).alias("duplicates"),
        F.count_distinct(present).alias("present"),
        F.count(F.when(F.col("corrupt"), True)).alias("corrupt_lines"),
        F.count(F.when(F.col("is_refused"), True)).alias("refused"),
        F.min(seq).alias("first_seq"),
        F.max(present).alias("last_seq"),
        F.min("t_ns").alias("first_ns"),
        F.max("t_ns").alias("last_ns"),
        F.max(started).alias("started"),
        F.max(stopped).alias("stopped"),
        F.max(F.when(stopped, F.col("reason"))).alias("stop_reason"),
    )
    counts = ("records", "duplicates", "present", "corrupt_lines", "refused", "unread")
    flags = ("started", "stopped")
    # seq counts from 0, so what is missing at the front shows as well.
    missing = F.coalesce(F.col("last_seq") + 1 - F.col("present"), F.lit(0))
    unread = unread.groupBy("run", "node", "boot").agg(F.sum("unread").alias("unread"))
    return (
        boots.join(unread, ["run", "node", "boot"], "full")
        .withColumns({name: F.coalesce(F.col(name), F.lit(0)) for name in counts})
        .withColumns({name: F.coalesce(F.col(name), F.lit(False)) for name in flags})
        .withColumn("corrupt_lines", F.col("corrupt_lines") + F.col("unread"))
        .withColumn("missing", missing)
        .withColumn("complete", F.col("started") & F.col("stopped") & (F.col("missing") == 0))
    )


def vouched(makers: DataFrame, nodes: DataFrame) -> DataFrame:
    """The streams whose every maker has a log without any flaw: what is not in it was not emitted."""
    flaws = F.col("duplicates") + F.col("corrupt_lines") + F.col("refused")
    sound = nodes.groupBy("run", "node").agg(F.min(F.col("complete") & (flaws == 0)).alias("sound"))
    return (
        F.broadcast(makers)
        .join(sound, ["run", "node"], "left")
        .groupBy("run", "origin")
        .agg(F.min(F.coalesce("sound", F.lit(False))).alias("vouched"))
    )


def runs(described: DataFrame, nodes: DataFrame) -> DataFrame:
    counts = ["records", "duplicates", "corrupt_lines", "refused"]
    totals = nodes.groupBy("run").agg(
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("ended_ns"),
        *(F.sum(name).alias(name) for name in counts),
    )
    # A node that writes down any time must not move the beginning or the end of the run for the others: the
    # whole run lies within its own length of the measured window.
    length = F.when(F.col("clock") == "real", _since_1970("finished") - _since_1970("started"))
    first = F.greatest("first_ns", F.col("measure_from_ns") - length)
    ended = F.least("ended_ns", F.col("measure_until_ns") + length)
    return (
        described.join(totals, "run", "left")
        .fillna(0, counts)
        .withColumn("first_ns", F.when(F.col("first_ns").isNotNull(), first))
        .withColumn("ended_ns", F.when(F.col("ended_ns").isNotNull(), ended))
    )


def _since_1970(moment: str) -> Column:
    """In nanoseconds."""
    return F.unix_micros(moment) * 1000


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


def tuples(
    records: DataFrame,
    hops: DataFrame,
    nodes: DataFrame,
    runs: DataFrame,
    sinks: DataFrame,
    vouched: DataFrame,
) -> DataFrame:
    """What became of each tuple on its way to each sink that its stream leads to.

    What an operator or a link did to it concerns the sinks behind them (``sinks``). In order of precedence:

    ``delivered``; ``dropped:<reason>`` (the last reason); ``filtered`` or ``absorbed``, which are no losses;
    then by where it was last: on a link that never brought it, it is ``in_flight_at_end`` if it was sent
    within ``GRACE_NS`` of the end, else ``lost_in_transit``; held by a replica, it is ``in_flight_at_end``
    unless that agent died with it. What is said to be delivered but was ``never_emitted``, though its maker
    is ``vouched`` for, counts nowhere.
    """
    key = ["run", "origin", "tau", "sink"]
    sinks = F.broadcast(sinks)
    at_sink = F.when(_is("tuple_delivered"), F.struct("t_ns", "size", "replica"))
    is_loss = ~F.col("reason").isin(*SET_ASIDE)
    # What a link had under way when it failed may have arrived all the same: any other word outweighs this.
    weight = F.when(F.col("reason") == LINK_FAILED, 0).when(is_loss, 2).otherwise(1)
    drop = F.struct(weight.alias("weight"), is_loss.alias("is_loss"), "t_ns", "seq", "reason", "replica")
    toward = (
        F.when(_is("tuple_sent"), F.col("to"))
        .when(_is("tuple_dropped"), F.coalesce("downstream", "replica"))
        .otherwise(F.col("replica"))
    )
    lives = (
        records.where(F.col("kind").isin(*map(tag_of, TUPLE_KINDS)))
        .withColumn("toward", toward)
        .join(sinks, ["run", "toward"])
        .groupBy(*key)
        .agg(
            F.min(F.when(_is("tuple_emitted"), F.col("t_ns"))).alias("emitted_ns"),
            F.max(F.when(_is("tuple_emitted"), F.col("size"))).alias("size"),
            F.min(F.when(_is("tuple_delivered"), F.col("born_ns"))).alias("born_ns"),
            F.min(at_sink).alias("arrival"),
            F.count(at_sink).alias("arrivals"),
            F.max(F.when(_is("tuple_dropped"), drop)).alias("drop"),
            F.max(F.struct("t_ns", "seq", "node", "boot")).alias("last"),
        )
        .withColumns({"node": F.col("last.node"), "boot": F.col("last.boot"), "last_ns": F.col("last.t_ns")})
    )
    passed = hops.withColumn("toward", F.col("receiver")).join(sinks, ["run", "toward"])
    on_links = passed.groupBy(*key).agg(
        F.max(F.when(F.col("received_ns").isNull(), F.col("sent_ns"))).alias("unreceived_ns"),
        F.max("received_ns").alias("received_ns"),
    )
    in_order = F.col("stopped") & (F.coalesce("stop_reason", F.lit("")) != KILLED)
    ended_in_order = nodes.select("run", "node", "boot", in_order.alias("holder_stopped"))
    on_a_link = F.col("unreceived_ns") >= F.coalesce(F.col("received_ns"), F.col("unreceived_ns"))
    # What failed in an operator is told in full by the reason: there may be as many as tuples.
    what = F.substring_index("drop.reason", ":", 1)
    unfounded = F.col("emitted_ns").isNull() & F.coalesce("vouched", F.lit(False))
    fate = (
        F.when(F.col("unfounded"), NEVER_EMITTED)
        .when(F.col("arrival").isNotNull(), DELIVERED)
        .when(F.col("drop").isNotNull() & ~F.col("drop.is_loss"), F.col("drop.reason"))
        .when(F.col("drop").isNotNull(), F.concat(F.lit(DROPPED), what))
        .when(on_a_link & (F.col("unreceived_ns") >= F.col("ended_ns") - GRACE_NS), IN_FLIGHT)
        .when(on_a_link, LOST)
        .when(F.col("holder_stopped"), IN_FLIGHT)
        .otherwise(LOST)
    )
    return (
        lives.join(on_links, key, "left")
        .join(F.broadcast(vouched), ["run", "origin"], "left")
        .withColumn("unfounded", F.col("arrival").isNotNull() & unfounded)
        .withColumn("arrival", F.when(~F.col("unfounded"), F.col("arrival")))
        .join(ended_in_order, ["run", "node", "boot"], "left")
        .join(windows(runs), "run")
        .withColumns(
            {
                "born_ns": F.coalesce("born_ns", "emitted_ns"),
                "delivered_ns": F.col("arrival.t_ns"),
                "delivered_size": F.col("arrival.size"),
                "delivered_at": F.col("arrival.replica"),
                "delivered": F.col("arrival").isNotNull(),
                "duplicates": F.when(F.col("arrival").isNotNull(), F.col("arrivals") - 1).otherwise(0),
                "drop_reason": F.col("drop.reason"),
                "dropped_at": F.col("drop.replica"),
                "fate": fate,
            }
        )
        .withColumns(
            {
                "latency_ns": F.col("delivered_ns") - F.col("born_ns"),
                "in_window": in_window("born_ns") & ~F.col("unfounded"),
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
