"""Makes the table of airtimes, and sums it up by slices of the measured window."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.analytics.core.airtime import MOST_SLICES
from orchestrator.analytics.core.making import between
from orchestrator.results.arrow import SUM, with_times
from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest, Reading
from orchestrator.results.truth import AIRTIME

_KEY = ["run", "node", "slice"]


def airtime(ingest: Ingest) -> AsRead:
    return AsRead(truth=AIRTIME, where=_is_possible)


def _is_possible(rows: pa.Table) -> pa.ChunkedArray:
    """Ground truth of somebody else's run may contain anything."""
    return pc.and_(between(rows["t_ns"], 0, 4 * 10**18), between(rows["sent_ns"], 0, 10**15))


def frames(reading: Reading) -> Mapping[str, pa.Table]:
    times = reading.times
    return {"slices": _summed(reading.columns("airtime", lambda rows: _summed(_in_slices(rows, times))))}


def _in_slices(airtime: pa.Table, times: pa.Table) -> pa.Table:
    """Returns the samples in the window with their slice. A sample is about the second before it."""
    found = with_times(airtime, times, ("measure_from_ns", "measure_until_ns"))
    t_ns, begin, end = (found[name].to_numpy() for name in ("t_ns", "measure_from_ns", "measure_until_ns"))
    width = np.maximum(np.ceil((end - begin) / (MOST_SLICES * 1e9)), 1) * 1e9
    place = np.floor((t_ns - begin - 1) / width).astype(np.int64)
    rows = {"run": found["run"], "node": found["node"], "slice": pa.array(place)}
    return pa.table({**rows, "sent_ns": found["sent_ns"].cast(SUM)}).filter(
        pa.array((t_ns > begin) & (t_ns <= end))
    )


def _summed(airtime: pa.Table) -> pa.Table:
    found = airtime.group_by(_KEY).aggregate([("sent_ns", "sum")])
    return found.select([*_KEY, "sent_ns_sum"]).rename_columns([*_KEY, "sent_ns"])
