"""Applies the rules of ``node_agent.telemetry`` for lines and their writers as Spark columns; the rules are
defined there only.

A line is *corrupt* if it breaks ``bounds``, ``needed``, ``kinds_with`` or ``rows`` of the record format. It
is *refused* if the rules of its application say that its node cannot have written it. The results equal those
of ``telemetry.belief.Writer``. Such lines enter no table, except the counts in ``nodes``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from node_agent.telemetry.belief import OLD_APP
from node_agent.telemetry.kinds import RowRule
from node_agent.telemetry.records import AGENT, ENVELOPE, RecordFormat
from orchestrator.analytics import schemas
from orchestrator.results.inputs import RunInput

# Facts from the path of a file, in addition to what its lines say.
FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN = "_file", "in_run", "in_node", "in_boot", "claimed_run"
APP_KIND = "app_kind"

_TIMES = ("t_ns", "born_ns", "taken_ns", "latency_ns")


def app_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Returns rows of ``schemas.APPS``."""
    return [
        {IN_RUN: run.run, "app": app.name, APP_KIND: app.kind} for run in runs for app in run.apps.values()
    ]


def scope_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Returns rows of ``schemas.SCOPES``."""
    return [
        {IN_RUN: run.run, IN_NODE: node, "app": app.name, "subject": part, "scope": _names(scope)}
        for run in runs
        for app in run.apps.values()
        for node, parts in app.reader.scopes(app.plan).scopes.items()
        for part, scope in parts.items()
    ]


def _names(scope: msgspec.Struct) -> dict[str, list[str]]:
    """Returns the lists of names that rules refer to."""
    found: Mapping[str, Any] = msgspec.structs.asdict(scope)
    return {name: list(names) for name, names in found.items() if not isinstance(names, str)}


def judged(
    lines: DataFrame, files: DataFrame, apps: DataFrame, scopes: DataFrame, format: RecordFormat
) -> DataFrame:
    """Returns ``lines`` with ``run``, ``node`` and ``boot`` from their paths, ``corrupt`` and ``is_refused``.

    Times of lines that are not believed are null, so that nothing is computed from them. ``app`` is filled in
    for lines of old runs, which had one application.
    """
    is_agents = F.col("kind").isin(*_kinds_of(format, AGENT))
    said = F.coalesce("app", F.lit(""))
    placed = (
        lines.join(F.broadcast(files), FILE)
        .withColumn("corrupt", _corrupt(format))
        .withColumn("app", F.when(is_agents | (said != ""), said).otherwise(OLD_APP))
        .join(F.broadcast(apps), [IN_RUN, "app"], "left")
        .withColumn("subject", F.when(~is_agents, _subject(format)))
    )
    known = placed.join(F.broadcast(scopes), [IN_RUN, IN_NODE, "app", "subject"], "left")
    marked = known.withColumn("is_refused", ~F.col("corrupt") & _refused(format, is_agents))
    believed = ~F.col("corrupt") & ~F.col("is_refused")
    return (
        marked.withColumns({name: F.when(believed, F.col(name)) for name in _TIMES})
        .withColumns({"run": F.col(IN_RUN), "node": F.col(IN_NODE), "boot": F.col(IN_BOOT)})
        .drop(schemas.CORRUPT, FILE, IN_RUN, IN_NODE, IN_BOOT, CLAIMED_RUN, APP_KIND, "scope", "subject")
    )


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(or_, (F.coalesce(each, F.lit(False)) for each in conditions))


def _kinds_of(format: RecordFormat, app: str) -> list[str]:
    """Returns the kinds of records that applications of a kind, or the agent, write."""
    return [kind for kind, owner in format.owners.items() if owner == app]


def _corrupt(format: RecordFormat) -> Column:
    absent = [F.col(name).isNull() for name in ENVELOPE]
    arrays = {each.name for each in schemas.raw(format.events) if isinstance(each.dataType, ArrayType)}
    outside = [_outside(name, *bounds, name in arrays) for name, bounds in format.bounds.items()]
    incomplete = [
        (F.col("kind") == kind) & _any([F.col(name).isNull() for name in names])
        for kind, names in format.needed.items()
        if names
    ]
    extent = [
        (F.size(name) > 0) & (F.size(name) != F.coalesce(count, F.lit(1)))
        for name, count in format.counted.items()
    ]
    rows = [
        F.col("kind").isin(*format.kinds_with[name]) & F.exists(name, _breaks(rule))
        for name, rule in format.rows.items()
    ]
    elsewhere = F.col("boot") != F.col(IN_BOOT)
    unread = F.col(schemas.CORRUPT).isNotNull()
    return _any([unread, *absent, elsewhere, *outside, *incomplete, *_foreign(format), *extent, *rows])


def _foreign(format: RecordFormat) -> Iterator[Column]:
    """Says whether there is a field that the record's kind, if it is known, does not have."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, kinds in format.kinds_with.items():
        alike.setdefault(kinds, []).append(name)
    kind = F.col("kind")
    for kinds, names in alike.items():
        others = [other for other in format.needed if other not in kinds]
        yield kind.isin(others) & _any([F.col(name).isNotNull() for name in names])


def _outside(name: str, low: int, high: int, is_array: bool) -> Column:
    def beyond(value: Column) -> Column:
        return value.isNull() | (value < low) | (value > high)

    value = F.col(name)
    return F.exists(value, beyond) if is_array else value.isNotNull() & beyond(value)


def _breaks(rule: RowRule) -> Callable[[Column], Column]:
    """Does the opposite of ``RowRule.allows``; a null breaks the rule, too."""
    fixed, groups = len(rule.values), len(rule.groups)

    def limit(place: Column, which: int) -> Column:
        found = F.lit(None).cast("long")
        for number, bounds in enumerate(rule.groups):
            found = F.when((place - fixed) % groups == number, F.lit(bounds[which])).otherwise(found)
        for number, bounds in enumerate(rule.values):
            found = F.when(place == number, F.lit(bounds[which])).otherwise(found)
        return found

    def wrong(value: Column, place: Column) -> Column:
        return F.coalesce((value < limit(place, 0)) | (value > limit(place, 1)), F.lit(True))

    def breaks(row: Column) -> Column:
        size = F.size(row)
        extent = (
            (size < fixed)
            | (size > (rule.longest if groups else fixed))
            | ((size - fixed) % max(groups, 1) != 0)
        )
        return F.coalesce(extent | (F.size(F.filter(row, wrong)) > 0), F.lit(True))

    return breaks


def _subject(format: RecordFormat) -> Column:
    """Returns the part of its application that a record is about; null if it names none."""
    subject = F.lit(None).cast("string")
    for kind, records in format.by_app.items():
        if records.subject:
            subject = F.when(F.col(APP_KIND) == kind, F.col(records.subject)).otherwise(subject)
    return subject


def _refused(format: RecordFormat, is_agents: Column) -> Column:
    other_app = [is_agents & (F.col("app") != "") & F.col(APP_KIND).isNull()]
    other_app += [~is_agents & F.col(APP_KIND).isNull()]
    other_app += [
        F.col("kind").isin(*kinds) & (F.col(APP_KIND) != app)
        for app in format.by_app
        if app != AGENT and (kinds := _kinds_of(format, app))
    ]
    other_part = F.col("subject").isNotNull() & F.col("scope").isNull()
    broken = []
    for rule in dict.fromkeys(rule for rules in format.rules.values() for rule in rules):
        among = F.array_contains(F.col("scope")[rule.among], F.col(rule.field))
        breaks = ~among if rule.must == "be" else among
        broken.append(F.col("kind").isin(*rule.kinds) & breaks)
    other_place = [F.col("run") != F.col(CLAIMED_RUN), F.col("node") != F.col(IN_NODE)]
    return _any([*other_place, *other_app, other_part, *broken])
