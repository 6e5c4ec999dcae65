"""The rules of ``node_agent.telemetry`` for lines and their writers, as columns: one definition for both.

A line is *corrupt* if it breaks ``BOUNDS``, ``NEEDED`` or ``KINDS_WITH`` of ``records``, and *refused* if it
cannot be its node's word by the rules of the application that it is of. Neither enters a table other than the
counts of ``nodes``.
"""

from collections.abc import Iterator, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from node_agent.model.telemetry import AgentStart, AgentStop, Event, RefusalCount, RoutingOverhead
from node_agent.telemetry.belief import OTHER_NODE, OTHER_REPLICA, OTHER_RUN, Rule
from node_agent.telemetry.records import BOUNDS, ENVELOPE, KINDS_WITH, NEEDED, tag_of
from orchestrator.analytics import schemas
from orchestrator.results.inputs import RunInput

# What the place of a file says, beside what its lines say.
FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN = "_file", "in_run", "in_node", "in_boot", "claimed_run"
ONLY_APP = "only_app"

_KINDS: tuple[type[Event], ...] = (AgentStart, AgentStop, RefusalCount, RoutingOverhead)
AGENTS_OWN = tuple(map(tag_of, _KINDS))
"""Kinds of records that are of the node's agent and not of an application."""

_TIMES = ("t_ns", "born_ns", "taken_ns", "latency_ns")


def scope_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Rows of ``schemas.SCOPES``."""
    return [
        {IN_RUN: run.run, IN_NODE: node, "app": app.name, "subject": subject, "scope": dict(names)}
        for run in runs
        for app in run.apps.values()
        for node, subject, names in app.reader.scopes(app.plan)
    ]


def judged(lines: DataFrame, files: DataFrame, scopes: DataFrame, runs: Sequence[RunInput]) -> DataFrame:
    """``lines`` with ``run``, ``node`` and ``boot`` by where they lie, ``corrupt`` and ``is_refused``.

    Times of lines that are not believed are null, so that nothing is computed from them. ``app`` is set in
    lines from before there could be several applications.
    """
    readers = {app.kind: app.reader for run in runs for app in run.apps.values()}
    subjects = dict.fromkeys(reader.subject for reader in readers.values())
    rules = [rule for reader in readers.values() for rule in reader.rules()]
    nobody = F.lit(None).cast("string")
    subject = F.coalesce(*subjects) if subjects else nobody
    unsaid = F.when(F.col("kind").isin(*AGENTS_OWN), "").otherwise(F.col(ONLY_APP))
    # What names a part of an application is of one, whatever it says.
    said = F.when((F.col("app") != "") | F.col("subject").isNull(), F.col("app"))
    placed = (
        lines.join(F.broadcast(files), FILE)
        .withColumn("corrupt", _corrupt())
        .withColumn("subject", subject)
        .withColumn("app", F.coalesce(said, unsaid))
    )
    known = placed.join(F.broadcast(scopes), [IN_RUN, IN_NODE, "app", "subject"], "left")
    told = known.withColumn("is_refused", F.when(~F.col("corrupt"), _refusal(rules)).isNotNull())
    believed = ~F.col("corrupt") & ~F.col("is_refused")
    return (
        told.withColumns({name: F.when(believed, F.col(name)) for name in _TIMES})
        .withColumns({"run": F.col(IN_RUN), "node": F.col(IN_NODE), "boot": F.col(IN_BOOT)})
        .drop(schemas.CORRUPT, FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN, ONLY_APP, "scope", "subject")
    )


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(or_, (F.coalesce(each, F.lit(False)) for each in conditions))


def _corrupt() -> Column:
    absent = [F.col(name).isNull() for name in ENVELOPE]
    outside = [_outside(name) for name in BOUNDS]
    incomplete = [
        (F.col("kind") == kind) & _any([F.col(name).isNull() for name in names])
        for kind, names in NEEDED.items()
        if names
    ]
    many = F.coalesce("tuples", F.lit(1))
    extent = [(F.size(name) > 0) & (F.size(name) != many) for name in ("sizes", "births")]
    elsewhere = F.col("boot") != F.col(IN_BOOT)
    unread = F.col(schemas.CORRUPT).isNotNull()
    return _any([unread, *absent, elsewhere, *outside, *incomplete, *_foreign(), *extent])


def _foreign() -> Iterator[Column]:
    """Whether there is a field that the record's kind does not have, if that kind is known."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, kinds in KINDS_WITH.items():
        alike.setdefault(kinds, []).append(name)
    kind = F.col("kind")
    for kinds, names in alike.items():
        others = [other for other in NEEDED if other not in kinds]
        yield kind.isin(others) & _any([F.col(name).isNotNull() for name in names])


@cache
def _arrays() -> frozenset[str]:
    """Fields that are lists."""
    return frozenset(each.name for each in schemas.raw() if isinstance(each.dataType, ArrayType))


def _outside(name: str) -> Column:
    low, high = BOUNDS[name]

    def beyond(value: Column) -> Column:
        return value.isNull() | (value < low) | (value > high)

    value = F.col(name)
    return F.exists(value, beyond) if name in _arrays() else value.isNotNull() & beyond(value)


def _refusal(rules: Sequence[Rule]) -> Column:
    """The reason; null if it is believed."""
    reason = (
        F.when(F.col("run") != F.col(CLAIMED_RUN), OTHER_RUN)
        .when(F.col("node") != F.col(IN_NODE), OTHER_NODE)
        .when(F.col("subject").isNotNull() & F.col("scope").isNull(), OTHER_REPLICA)
    )
    for rule in rules:
        among = F.array_contains(F.col("scope")[rule.among], F.col(rule.field))
        breaks = ~among if rule.must == "be" else among
        reason = reason.when(F.col("kind").isin(*rule.kinds) & F.coalesce(breaks, F.lit(False)), rule.reason)
    return reason
