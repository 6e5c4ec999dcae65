"""Chooses and sums up, without Spark, what ``values`` needs from the tables of the core."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.results.arrow import SUM, with_times
from orchestrator.results.spark import Reading

MOST_POSITIONS = 150
"""Limit per node; more samples are thinned out."""

_LINK = ["run", "src", "dst"]
_SUMS = ["attempted", "delivered", "weighed"]


def logs(reading: Reading) -> Mapping[str, pa.Table]:
    return {"boots": reading.columns("nodes")}


def network(reading: Reading) -> Mapping[str, pa.Table]:
    times = reading.times

    def thinned(positions: pa.Table) -> pa.Table:
        found = with_times(positions, times, ("zero_ns", "ended_ns"))
        t_ns, zero, ended = (found[name].to_numpy() for name in ("t_ns", "zero_ns", "ended_ns"))
        step = np.maximum(np.ceil((ended - zero) / (MOST_POSITIONS * 1e9)), 1)
        return found.filter(pa.array(np.floor((t_ns - zero) / 1e9) % step == 0))

    links = _summed(reading.columns("deliveries", lambda rows: _summed(_weighed(rows))))
    return {"positions": reading.columns("positions", thinned), "links": links}


def _weighed(deliveries: pa.Table) -> pa.Table:
    """Returns what is summed up of each directed link: expectations are weighted by what was sent."""
    attempted, delivered = (deliveries[name].cast(SUM) for name in ("attempted", "delivered"))
    weighed = pc.multiply(deliveries["attempted"].cast(pa.float64()), deliveries["expected"])
    sums = dict(zip(_SUMS, (attempted, delivered, weighed), strict=True))
    return pa.table({**{name: deliveries[name] for name in _LINK}, **sums})


def _summed(deliveries: pa.Table) -> pa.Table:
    found = deliveries.group_by(_LINK).aggregate([(name, "sum") for name in _SUMS])
    return found.select([*_LINK, *(f"{name}_sum" for name in _SUMS)]).rename_columns([*_LINK, *_SUMS])


def ways(reading: Reading) -> Mapping[str, pa.Table]:
    return {"intervals": reading.columns("connectivity")}
