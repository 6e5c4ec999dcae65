"""What functions of a contribution share that work on columns in memory, without Spark."""

from collections.abc import Sequence
from decimal import Decimal

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


def in_window(rows: pa.Table, times: pa.Table, t_ns: str) -> pa.Table:
    """Returns those rows whose time is in the measured window of their run, with its ends."""
    ends = ("measure_from_ns", "measure_until_ns")
    found = with_times(rows.filter(rows[t_ns].is_valid()), times, ends)
    begun, ended = (found[name] for name in ends)
    return found.filter(pc.and_(pc.greater_equal(found[t_ns], begun), pc.less(found[t_ns], ended)))


def summed_up(rows: pa.Table, key: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Adds up the columns ``names`` of rows with the same key."""
    found = rows.group_by(list(key)).aggregate([(name, "sum") for name in names])
    return found.select([*key, *(f"{name}_sum" for name in names)]).rename_columns([*key, *names])


def whole(value: Decimal | None) -> int | None:
    """Returns such a sum as a plain number."""
    return None if value is None else int(value)
