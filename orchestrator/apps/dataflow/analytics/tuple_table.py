"""Makes the tables of tuples: what became of each tuple, and between which replicas it went."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from node_agent.apps.dataflow.belief import ABSORBED, FILTERED
from node_agent.apps.dataflow.events import TUPLE_KINDS
from node_agent.model.telemetry import KILLED
from node_agent.telemetry.kinds import tag_of
from orchestrator.results.columns import TEXT
from orchestrator.results.inputs import AppInput, RunInput
from orchestrator.results.spark import Ingest, inside

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


def _of(kind: str, value: str) -> str:
    """Returns the value in records of this kind, as a text of SQL; else null."""
    return f"case when kind = '{kind}' then {value} end"


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
    is_sound = "complete and duplicates + corrupt_lines + refused = 0"
    sound = nodes.groupBy("run", "node").agg(F.expr(f"min({is_sound}) as sound"))
    return (
        F.broadcast(makers)
        .join(sound, ["run", "node"], "left")
        .groupBy("run", "app", "origin")
        .agg(F.expr("min(coalesce(sound, false)) as vouched"))
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
        F.expr("min(sent_ns) as sent_ns"),
        F.expr("min(received_ns) as received_ns"),
        F.expr("count(sent_ns) as sends"),
        F.expr("count(received_ns) as receptions"),
        F.expr("max(size) as size"),
    )


# As texts, because every part of an expression would be a call of its own to the JVM.
_TOWARD = (
    "case when kind = 'tuple_sent' then `to` "
    "when kind = 'tuple_dropped' then coalesce(downstream, replica) else replica end"
)
# Spark groups by sorting here: a hash in front makes that fast.
_HASHED = "xxhash64(run, app, origin, tau, sink) as hash"
_IS_LOSS = f"reason not in {SET_ASIDE}"
_ARRIVAL = _of("tuple_delivered", "struct(t_ns, size, replica)")
# Tuples on a connection when it failed may have arrived: any other reason takes precedence.
_WEIGHT = f"case when reason = '{LINK_FAILED}' then 0 when {_IS_LOSS} then 2 else 1 end"
_DROP = f"struct({_WEIGHT} as weight, {_IS_LOSS} as is_loss, t_ns, seq, reason, replica)"
_LIVES = (
    f"min({_of('tuple_emitted', 't_ns')}) as emitted_ns",
    f"max({_of('tuple_emitted', 'size')}) as size",
    f"min({_of('tuple_delivered', 'born_ns')}) as born_ns",
    f"min({_ARRIVAL}) as arrival",
    f"count({_ARRIVAL}) as arrivals",
    f"max({_of('tuple_dropped', _DROP)}) as `drop`",
    "max(struct(t_ns, seq, node, boot)) as `last`",
)
_ON_LINKS = (
    "max(case when received_ns is null then sent_ns end) as unreceived_ns",
    "max(received_ns) as received_ns",
)
_UNFOUNDED = "arrival is not null and emitted_ns is null and coalesce(vouched, false)"
_ON_A_LINK = "unreceived_ns >= coalesce(received_ns, unreceived_ns)"
# Only the part before the colon: an operator's full error message may differ for each tuple.
_FATE = f"""
case when unfounded then '{NEVER_EMITTED}'
     when arrival is not null then '{DELIVERED}'
     when `drop` is not null and not `drop`.is_loss then `drop`.reason
     when `drop` is not null then concat('{DROPPED}', substring_index(`drop`.reason, ':', 1))
     when {_ON_A_LINK} and unreceived_ns >= ended_ns - {GRACE_NS} then '{IN_FLIGHT}'
     when {_ON_A_LINK} then '{LOST}'
     when holder_stopped then '{IN_FLIGHT}'
     else '{LOST}' end
"""
_ENDS = (
    "arrival.t_ns as delivered_ns",
    "arrival.t_ns - born_ns as latency_ns",
    "arrival.size as delivered_size",
    "arrival.replica as delivered_at",
    "arrival is not null as delivered",
    "case when arrival is not null then arrivals - 1 else 0 end as duplicates",
    "`drop`.reason as drop_reason",
    "`drop`.replica as dropped_at",
    "`last`.t_ns as last_ns",
    f"{_FATE} as fate",
    f"{inside('born_ns')} and not unfounded as in_window",
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
    lives = (
        records.selectExpr("*", f"{_TOWARD} as toward")
        .join(sinks, ["run", "app", "toward"])
        .groupBy(F.expr(_HASHED), *key)
        .agg(*map(F.expr, _LIVES))
        .selectExpr("*", "`last`.node as node", "`last`.boot as boot")
    )
    passed = ingest.table("hops").selectExpr("*", "receiver as toward").join(sinks, ["run", "app", "toward"])
    on_links = passed.groupBy(F.expr(_HASHED), *key).agg(*map(F.expr, _ON_LINKS))
    ended_in_order = nodes.selectExpr(
        "run", "node", "boot", f"stopped and coalesce(stop_reason, '') != '{KILLED}' as holder_stopped"
    )
    known = (
        lives.join(on_links, ["hash", *key], "left")
        .join(F.broadcast(_vouched(ingest)), ["run", "app", "origin"], "left")
        .withColumn("unfounded", F.expr(_UNFOUNDED))
        .withColumn("arrival", F.expr("case when not unfounded then arrival end"))
        .join(ended_in_order, ["run", "node", "boot"], "left")
    )
    born = ingest.timed(known).withColumn("born_ns", F.expr("coalesce(born_ns, emitted_ns)"))
    return born.selectExpr(*key, "born_ns", "emitted_ns", "size", *_ENDS)
