"""Computes the figures of a query from a run's records without Spark, by the same definitions.

Only for runs in which all nodes share a clock (virtual time, namespaces), and for queries of one source and
one sink whose operators pass every tuple on.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from node_agent.apps.dataflow.events import TupleDelivered, TupleEmitted, tuple_by_tuple
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.segments import read_records
from orchestrator.apps.dataflow.analytics.tuple_figures import (
    QUANTILES,
    Summed,
    arrival_figures,
    latency_figures,
)
from orchestrator.apps.dataflow.analytics.tuple_table import DELIVERED
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.results.spark import rounded
from orchestrator.runs.run_directory import RunDirectory

_EMITTED, _DELIVERED = tag_of(TupleEmitted), tag_of(TupleDelivered)


def measured(directory: RunDirectory, app: str = "query") -> dict[str, Any]:
    """Returns the figures of the measured window, named as in summary.json, and ``offered_fps``."""
    manifest = json.loads(directory.manifest.read_text())
    plan = deployment_in(manifest["apps"][app])
    if plan is None:
        raise ValueError(f"{directory.path} has no plan of a query {app}")
    begin, end = manifest["measure_from_ns"], manifest["measure_until_ns"]
    emitted = _first_times(directory, plan, plan.query.sources(), _EMITTED)
    delivered = _first_times(directory, plan, plan.query.sinks(), _DELIVERED)
    born = {key: record["t_ns"] for key, record in emitted.items()}
    born |= {key: record["born_ns"] for key, record in delivered.items()}
    owed = {key for key, t_ns in born.items() if begin <= t_ns < end}
    latencies = sorted(delivered[key]["t_ns"] - born[key] for key in owed if key in delivered)
    arrivals = sorted(
        (record["t_ns"], *key, record["size"])
        for key, record in delivered.items()
        if begin <= record["t_ns"] < end
    )
    found = _summed(latencies, arrivals)
    return {
        **arrival_figures(found, end - begin),
        **latency_figures(found),
        "offered_fps": rounded(len(owed) * 1e9 / (end - begin)),
        "emitted": len(owed),
        "delivered": len(latencies),
    }


def _first_times(
    directory: RunDirectory, plan: DeploymentPlan, operators: Sequence[str], kind: str
) -> dict[tuple[str, int], dict[str, Any]]:
    """Returns the first record of this kind for each tuple, by origin and τ."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for node in sorted({replica.node for name in operators for replica in plan.of(name)}):
        records = (each for each in read_records(directory.segments(node)) if each["kind"] == kind)
        for record in tuple_by_tuple(records):
            key = record["origin"], record["tau"]
            if key not in found or record["t_ns"] < found[key]["t_ns"]:
                found[key] = record
    return found


def _summed(latencies: Sequence[int], arrivals: Sequence[tuple[int, str, int, int]]) -> Summed:
    """Both are in order."""
    shares = [step / QUANTILES for step in range(QUANTILES + 1)] if latencies else []
    first = {"delivered_ns": arrivals[0][0], "delivered_size": arrivals[0][3]} if arrivals else None
    return Summed(
        fates={DELIVERED: len(latencies)},
        duplicates=0,
        latency_sum_ns=sum(latencies),
        latency_quantiles_ns=[percentile(latencies, share) for share in shares],
        arrivals=len(arrivals),
        bytes=sum(size for *_, size in arrivals),
        first=first,
        last_ns=arrivals[-1][0] if arrivals else 0,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Interpolates between the two nearest values, as the analysis does. ``share`` is between 0 and 1."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
