"""What functions of a contribution share that work on columns in memory, without Spark."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

SUM = pa.decimal128(38, 0)
"""The type for sums of values from nodes: it must not overflow, whatever they report."""


def with_times(rows: pa.Table, times: pa.Table, names: Sequence[str]) -> pa.Table:
    """Adds what ``times`` has of each row's run in the columns ``names``; leaves out rows of runs that lack
    one.
    """
    known = times.select(["run", *names]).drop_null()
    places = pc.index_in(rows["run"], value_set=known["run"].combine_chunks())
    found, places = rows.filter(places.is_valid()), places.drop_null()
    for name in names:
        found = found.append_column(name, known[name].take(places))
    return found
