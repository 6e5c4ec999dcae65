"""The rules of ``node_agent.telemetry`` for lines and their writers, as columns: one definition for both.

A line is *corrupt* if it breaks ``bounds``, ``needed`` or ``kinds_with`` of the record format, and *refused*
if it cannot be its node's word by the rules of its application. Neither enters a table other than the counts
of ``nodes``.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

from msgspec.structs import asdict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from node_agent.apps.dataflow.belief import RECORDS, scope_of
from node_agent.apps.records import record_format
from node_agent.telemetry.belief import OTHER_NODE, OTHER_RUN
from node_agent.telemetry.records import ENVELOPE
from orchestrator.analytics import schemas
from orchestrator.analytics.inputs import RunInput

# What the place of a file says, beside what its lines say.
FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN = "_file", "in_run", "in_node", "in_boot", "claimed_run"

_FORMAT = record_format()
_ARRAYS = {field.name for field in schemas.RAW if isinstance(field.dataType, ArrayType)}
_TIMES = ("t_ns", "born_ns", "taken_ns", "latency_ns")


def scope_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Rows of ``schemas.SCOPES``."""
    return [
        {IN_RUN: run.run, IN_NODE: replica.node, "scope": asdict(scope_of(replica, run.plan))}
        for run in runs
        for replica in run.plan.replicas
    ]


def judged(lines: DataFrame, files: DataFrame, scopes: DataFrame) -> DataFrame:
    """``lines`` with ``run``, ``node`` and ``boot`` by where they lie, ``corrupt`` and ``is_refused``.

    Times of lines that are not believed are null, so that nothing is computed from them.
    """
    placed = lines.join(F.broadcast(files), FILE).withColumn("corrupt", _corrupt())
    theirs = F.broadcast(scopes.withColumn("replica", F.col("scope.replica")))
    known = placed.join(theirs, [IN_RUN, IN_NODE, "replica"], "left")
    told = known.withColumn("is_refused", F.when(~F.col("corrupt"), _refusal()).isNotNull())
    believed = ~F.col("corrupt") & ~F.col("is_refused")
    return (
        told.withColumns({name: F.when(believed, F.col(name)) for name in _TIMES})
        .withColumns({"run": F.col(IN_RUN), "node": F.col(IN_NODE), "boot": F.col(IN_BOOT)})
        .drop(schemas.CORRUPT, FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN, "scope")
    )


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(or_, (F.coalesce(each, F.lit(False)) for each in conditions))


def _corrupt() -> Column:
    absent = [F.col(name).isNull() for name in ENVELOPE]
    outside = [_outside(name) for name in _FORMAT.bounds]
    incomplete = [
        (F.col("kind") == kind) & _any([F.col(name).isNull() for name in names])
        for kind, names in _FORMAT.needed.items()
        if names
    ]
    extent = [
        (F.size(name) > 0) & (F.size(name) != F.coalesce(count, F.lit(1)))
        for name, count in _FORMAT.counted.items()
    ]
    elsewhere = F.col("boot") != F.col(IN_BOOT)
    unread = F.col(schemas.CORRUPT).isNotNull()
    return _any([unread, *absent, elsewhere, *outside, *incomplete, *_foreign(), *extent])


def _foreign() -> Iterator[Column]:
    """Whether there is a field that the record's kind does not have, if that kind is known."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, kinds in _FORMAT.kinds_with.items():
        alike.setdefault(kinds, []).append(name)
    kind = F.col("kind")
    for kinds, names in alike.items():
        others = [other for other in _FORMAT.needed if other not in kinds]
        yield kind.isin(others) & _any([F.col(name).isNotNull() for name in names])


def _outside(name: str) -> Column:
    low, high = _FORMAT.bounds[name]

    def beyond(value: Column) -> Column:
        return value.isNull() | (value < low) | (value > high)

    value = F.col(name)
    return F.exists(value, beyond) if name in _ARRAYS else value.isNotNull() & beyond(value)


def _refusal() -> Column:
    """The reason; null if it is believed."""
    reason = (
        F.when(F.col("run") != F.col(CLAIMED_RUN), OTHER_RUN)
        .when(F.col("node") != F.col(IN_NODE), OTHER_NODE)
        .when(F.col("replica").isNotNull() & F.col("scope").isNull(), RECORDS.subject)
    )
    for rule in RECORDS.rules:
        among = F.array_contains(F.col(f"scope.{rule.among}"), F.col(rule.field))
        breaks = ~among if rule.must == "be" else among
        reason = reason.when(F.col("kind").isin(*rule.kinds) & F.coalesce(breaks, F.lit(False)), rule.reason)
    return reason
