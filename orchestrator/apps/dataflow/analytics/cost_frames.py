"""Chooses the cost samples that ``cost_truth`` compares with the true links."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.apps.dataflow.analytics.cost_truth import ETX, GOLDEN, HOPS, MOST_SECONDS
from orchestrator.results.arrow import in_window
from orchestrator.results.spark import Reading

_COLUMNS = ("run", "app", "t_ns", "replica", "to", "cost", "metric")


def frames(reading: Reading) -> Mapping[str, pa.Table]:
    known = pa.array([run.run for run in reading.runs if run.truth("links.jsonl") is not None], pa.string())
    if not len(known):
        return {}
    times = reading.times

    def chosen(costs: pa.Table) -> pa.Table:
        counted = pc.is_in(costs["metric"], pa.array([ETX, HOPS]))
        inside = in_window(costs.filter(pc.and_(pc.is_in(costs["run"], known), counted)), times, "t_ns")
        t_ns, begin, end = (
            inside[name].to_numpy() for name in ("t_ns", "measure_from_ns", "measure_until_ns")
        )
        second = np.floor((t_ns - begin) / 1e9)
        due = (second * GOLDEN) % 1 < MOST_SECONDS * 1e9 / (end - begin)
        return inside.select(list(_COLUMNS)).filter(pa.array(due))

    return {"samples": reading.columns("costs", chosen, _COLUMNS)}
