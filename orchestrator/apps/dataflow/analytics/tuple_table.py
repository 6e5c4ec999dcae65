"""Makes the tables of tuples: what became of each tuple, and between which replicas it went."""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from node_agent.apps.dataflow.belief import ABSORBED, FILTERED
from node_agent.apps.dataflow.events import TUPLE_KINDS
from node_agent.model.telemetry import KILLED
from node_agent.telemetry.kinds import tag_of
from orchestrator.results.columns import TEXT
from orchestrator.results.inputs import AppInput, RunInput
from orchestrator.results.spark import Ingest, in_window

SINKS = {"run": TEXT, "app": TEXT, "toward": TEXT, "sink": TEXT}
"""The replica or operator ``toward`` leads to ``sink``."""
MAKERS = {"run": TEXT, "app": TEXT, "origin": TEXT, "node": TEXT}
"""``node`` emits the stream ``origin``."""

# A tuple that was on a connection this shortly before the end may still have arrived: under back-pressure
# connections hold tuples for seconds. It then counts as in flight, neither delivered nor lost.
GRACE_NS = 10 * 10**9

DELIVERED = "delivered"
DROPPED = "dropped:"
IN_FLIGHT = "in_flight_at_end"
LOST = "lost_in_transit"
# Filtered: an operator emitted nothing for it. Absorbed: it became part of a window or join. No losses.
SET_ASIDE = (FILTERED, ABSORBED)
LINK_FAILED = "link_failed"
SHED = f"{DROPPED}source_buffer_full"
# Reported as delivered, but its source, which has a complete log, never emitted it.
NEVER_EMITTED = "never_emitted"


def _is(kind: str) -> Column:
    return F.col("kind") == kind


def tuple_by_tuple(records: DataFrame) -> DataFrame:
    """Splits records of several tuples into one for each, with its share of common values."""
    # As texts, because every part of an expression would be a call of its own to the JVM.
    count = "greatest(tuples, 1)"  # ignores null
    shares = {
        "tau": "tau + place",
        "size": f"coalesce(get(sizes, place), cast(size / {count} as bigint))",
        "took_ns": f"cast(took_ns / {count} as bigint)",
        "born_ns": "born_ns + coalesce(get(births, place), 0)",
    }
    known = set(records.columns)
    return (
        records.selectExpr("*", f"explode(sequence(0, cast({count} - 1 as int))) as place")
        .withColumns({name: F.expr(share) for name, share in shares.items() if name in known})
        .drop("tuples", "sizes", "births", "place")
    )


def _dataflows(ingest: Ingest) -> list[tuple[RunInput, AppInput]]:
    return [(run, app) for run in ingest.runs for app in run.apps.values() if app.kind == "query"]


def _sinks(ingest: Ingest) -> DataFrame:
    """Returns which sinks each operator, and each replica of one, leads to."""
    rows: list[dict[str, Any]] = []
    for run, app in _dataflows(ingest):
        query = app.plan.query
        for operator in query.names():
            behind = query.reachable_from([operator])
            names = [operator, *(replica.id for replica in app.plan.of(operator))]
            rows += [
                {"run": run.run, "app": app.name, "toward": name, "sink": sink}
                for name in names
                for sink in query.sinks()
                if sink in behind
            ]
    return ingest.frame(rows, SINKS)


def _vouched(ingest: Ingest) -> DataFrame:
    """Returns the streams all of whose emitting nodes have a flawless log: a tuple that is not in it was not
    emitted.
    """
    rows = [
        {"run": run.run, "app": app.name, "origin": origin, "node": replica.node}
        for run, app in _dataflows(ingest)
        for replica in app.plan.replicas
        for origin in app.plan.query.makes(replica.operator)
    ]
    makers, nodes = ingest.frame(rows, MAKERS), ingest.table("nodes")
    flaws = F.col("duplicates") + F.col("corrupt_lines") + F.col("refused")
    sound = nodes.groupBy("run", "node").agg(F.min(F.col("complete") & (flaws == 0)).alias("sound"))
    return (
        F.broadcast(makers)
        .join(sound, ["run", "node"], "left")
        .groupBy("run", "app", "origin")
        .agg(F.min(F.coalesce("sound", F.lit(False))).alias("vouched"))
    )


def hops(ingest: Ingest) -> DataFrame:
    records = tuple_by_tuple(ingest.records("tuple_sent", "tuple_received"))
    sent = "kind = 'tuple_sent'"
    ends = records.selectExpr(
        "run",
        "app",
        "origin",
        "tau",
        f"if({sent}, replica, sender) as sender",
        f"if({sent}, `to`, replica) as receiver",
        f"if({sent}, t_ns, null) as sent_ns",
        f"if({sent}, null, t_ns) as received_ns",
        "size",
    )
    return ends.groupBy("run", "app", "origin", "tau", "sender", "receiver").agg(
        F.min("sent_ns").alias("sent_ns"),
        F.min("received_ns").alias("received_ns"),
        F.count("sent_ns").alias("sends"),
        F.count("received_ns").alias("receptions"),
        F.max("size").alias("size"),
    )


def tuples(ingest: Ingest) -> DataFrame:
    """Computes what became of each tuple on its way to each sink that its stream leads to.

    What an operator or a connection did to it concerns the sinks behind them (``sinks``). The first that
    applies counts:

    ``delivered``; ``dropped:<reason>`` (the last reason); ``filtered`` or ``absorbed``, which are no losses;
    then by where it was last. On a connection that did not deliver it: ``in_flight_at_end`` if it was sent
    within ``GRACE_NS`` of the end, else ``lost_in_transit``. Held by a replica: ``in_flight_at_end`` unless
    that agent was killed. A tuple that is reported as delivered but was ``never_emitted``, although its
    source has a complete log, counts nowhere.
    """
    key = ["run", "app", "origin", "tau", "sink"]
    sinks = F.broadcast(_sinks(ingest))
    records, nodes = tuple_by_tuple(ingest.records(*map(tag_of, TUPLE_KINDS))), ingest.table("nodes")
    at_sink = F.when(_is("tuple_delivered"), F.struct("t_ns", "size", "replica"))
    is_loss = ~F.col("reason").isin(*SET_ASIDE)
    # Tuples on a connection when it failed may have arrived: any other reason takes precedence.
    weight = F.when(F.col("reason") == LINK_FAILED, 0).when(is_loss, 2).otherwise(1)
    drop = F.struct(weight.alias("weight"), is_loss.alias("is_loss"), "t_ns", "seq", "reason", "replica")
    toward = (
        F.when(_is("tuple_sent"), F.col("to"))
        .when(_is("tuple_dropped"), F.coalesce("downstream", "replica"))
        .otherwise(F.col("replica"))
    )
    # Spark groups by sorting here: a hash in front makes that fast.
    hashed = F.xxhash64(*key).alias("hash")
    lives = (
        records.withColumn("toward", toward)
        .join(sinks, ["run", "app", "toward"])
        .groupBy(hashed, *key)
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
    passed = (
        ingest.table("hops").withColumn("toward", F.col("receiver")).join(sinks, ["run", "app", "toward"])
    )
    on_links = passed.groupBy(hashed, *key).agg(
        F.max(F.when(F.col("received_ns").isNull(), F.col("sent_ns"))).alias("unreceived_ns"),
        F.max("received_ns").alias("received_ns"),
    )
    in_order = F.col("stopped") & (F.coalesce("stop_reason", F.lit("")) != KILLED)
    ended_in_order = nodes.select("run", "node", "boot", in_order.alias("holder_stopped"))
    on_a_link = F.col("unreceived_ns") >= F.coalesce(F.col("received_ns"), F.col("unreceived_ns"))
    # Only the part before the colon: an operator's full error message may differ for each tuple.
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
    known = (
        lives.join(on_links, ["hash", *key], "left")
        .join(F.broadcast(_vouched(ingest)), ["run", "app", "origin"], "left")
        .withColumn("unfounded", F.col("arrival").isNotNull() & unfounded)
        .withColumn("arrival", F.when(~F.col("unfounded"), F.col("arrival")))
        .join(ended_in_order, ["run", "node", "boot"], "left")
    )
    return (
        ingest.timed(known)
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
