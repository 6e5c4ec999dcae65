"""Converts times that nodes recorded by their own clocks to the orchestrator's time, before anything else
uses them.

The time of a record was read from its node's clock. An application says which clock births of tuples were
read from.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.clocks.correction import Pieces, ahead_ns
from orchestrator.results.inputs import LATEST_NS, RunInput

Births = Mapping[tuple[str, str], Pieces]
"""The clock of births by application and origin."""


def births_of(run: RunInput) -> dict[tuple[str, str], Pieces]:
    """Returns the clocks of births; empty if all nodes use the orchestrator's clock."""
    if not run.clocks:
        return {}
    return {
        (app.name, origin): pieces
        for app in run.apps.values()
        for origin, pieces in app.reader.births(run.clocks, app.plan).items()
    }


def corrected(record: dict[str, Any], clock: Pieces, births: Births) -> dict[str, Any]:
    """Returns a record's fields with all times in the orchestrator's; times without a known clock stay."""
    t_ns, latency_ns, born_ns = record["t_ns"], record.get("latency_ns"), record.get("born_ns")
    ahead = ahead_ns(clock, t_ns)
    birth_ns = born_ns if born_ns is not None else t_ns - latency_ns if latency_ns is not None else None
    of_birth = births.get((record["app"], record.get("origin") or ""), ())
    birth_ahead = ahead_ns(of_birth, birth_ns) if birth_ns is not None else 0
    changed = {"t_ns": _bounded(t_ns - ahead)}
    if record.get("taken_ns") is not None:
        changed["taken_ns"] = _bounded(record["taken_ns"] - ahead)
    if born_ns is not None:
        changed["born_ns"] = _bounded(born_ns - birth_ahead)
    if latency_ns is not None:
        changed["latency_ns"] = max(-LATEST_NS, min(LATEST_NS, latency_ns - ahead + birth_ahead))
    return {**record, **changed}


def _bounded(time_ns: int) -> int:
    """Limits times, so that differences of corrected times fit into 64 bits: a node that lies about its clock
    must not stop the analysis.
    """
    return max(0, min(LATEST_NS, time_ns))
