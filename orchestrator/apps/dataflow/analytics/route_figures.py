"""Computes the metrics of replicas: how often they switched, how long sources had no route, what they
skipped.
"""

from collections.abc import Mapping
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.results.arrow import in_window
from orchestrator.results.contribution import Rows
from orchestrator.results.spark import Reading, Subject, half_up, over_window, rounded

_MILLISECOND = Decimal("0.001")
_CARRIER = ["run", "app", "replica"]
_COUNTER = ["run", "app", "replica", "node", "boot", "kind"]


def frames(reading: Reading) -> Mapping[str, pa.Table]:
    """All switches are needed for the drawing of routes, so they are also counted here."""
    faults = _highest(reading.columns("operator_faults", lambda rows: _highest(_with_kind(rows))))
    return {
        "carriers": _carriers(reading),
        "switches": reading.columns("switches"),
        "passed_over": faults,
    }


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    switches = sorted(rows["switches"], key=itemgetter("t_ns", "replica", "downstream"))
    carriers = {row["replica"] for row in rows["carriers"]}
    counted = sum(row["in_window"] and row["changed"] and row["replica"] in carriers for row in switches)
    passed_over: dict[str, int] = {}
    for row in sorted(rows["passed_over"], key=itemgetter("kind")):
        passed_over[row["kind"]] = passed_over.get(row["kind"], 0) + row["count"]
    return {
        "switches": counted,
        "switches_per_min": over_window(60 * counted, subject.window_ns),
        "no_route_s": _no_route_s(subject, switches),
        "operator_faults": passed_over,
        "routes": [
            [
                half_up((row["t_ns"] - subject.zero_ns) / 1e9, _MILLISECOND),
                row["replica"],
                row["downstream"],
                row["new"],
            ]
            for row in switches
        ],
    }


def _no_route_s(subject: Subject, switches: Rows) -> float:
    """Returns the time without a route. An output that never reported a choice never had a route."""
    assert subject.app is not None
    plan = subject.app.plan
    sources = plan.query.sources()
    outputs = sum(len(plan.of(name)) * len(plan.routed(name)) for name in sources)
    replicas = {replica.id for name in sources for replica in plan.of(name)}
    output = itemgetter("replica", "downstream")
    own = sorted((row for row in switches if row["replica"] in replicas), key=output)
    found = [_without_route(subject, list(choices)) for _, choices in groupby(own, output)]
    unknown_ns = max(outputs - len(found), 0) * subject.window_ns
    return rounded((sum(found) + unknown_ns) / 1e9)


def _without_route(subject: Subject, choices: Rows) -> int:
    """Returns how long an output had no route: each change ends the time of ``old`` and begins that of
    ``new``; null means no route.
    """
    before: int | None = None
    total = 0
    for row in choices:
        if row["old"] is None:
            total += _overlap(subject, before, row["t_ns"])
        before = row["t_ns"]
    return total + (_overlap(subject, before, None) if choices[-1]["new"] is None else 0)


def _overlap(subject: Subject, begin: int | None, end: int | None) -> int:
    """Returns how much of the time from ``begin`` to ``end`` is in the measured window."""
    manifest = subject.run.manifest
    since = [t_ns for t_ns in (begin, manifest.get("measure_from_ns")) if t_ns is not None]
    until = [t_ns for t_ns in (end, manifest.get("measure_until_ns")) if t_ns is not None]
    return max(min(until) - max(since), 0) if since and until else 0


def _carriers(reading: Reading) -> pa.Table:
    """Returns the replicas that emitted or received a tuple in the window."""
    times = reading.times

    def moved(table: str, replica: str, t_ns: str) -> pa.Table:
        def inside(rows: pa.Table) -> pa.Table:
            found = in_window(rows, times, t_ns).select(["run", "app", replica])
            return _distinct(found.rename_columns(_CARRIER))

        return reading.columns(table, inside, ("run", "app", replica, t_ns))

    emitted = moved("tuples", "origin", "emitted_ns")
    return _distinct(pa.concat_tables([emitted, moved("hops", "receiver", "received_ns")]))


def _distinct(carriers: pa.Table) -> pa.Table:
    return carriers.group_by(_CARRIER).aggregate([])


def _with_kind(faults: pa.Table) -> pa.Table:
    """Adds what operators skipped: the text before the colon of its reason."""
    return faults.append_column("kind", pc.replace_substring_regex(faults["reason"], "(?s):.*", ""))


def _highest(faults: pa.Table) -> pa.Table:
    """Each replica counts from 1 again after a restart; the next record makes up for a lost one."""
    found = faults.group_by(_COUNTER).aggregate([("count", "max")])
    return found.select([*_COUNTER, "count_max"]).rename_columns([*_COUNTER, "count"])
