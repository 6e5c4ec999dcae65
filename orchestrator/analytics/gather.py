"""Collects several small results in one Spark job, because starting a job takes longer than computing any of
them.

Of thousands of runs they are not so small any more: they stay columns until somebody asks for those of a run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

Rows = list[dict[str, Any]]

_NAME, _RUN, _ROW = "name", "run", "row"


class Gathered:
    """Rows of several frames, by run. ``here``: columns by the name of the frame. ``packed``: rows of all
    other frames as JSON.
    """

    def __init__(self, here: Mapping[str, pa.Table], packed: pa.Table | None) -> None:
        self._here = {name: _by_run(table) for name, table in here.items()}
        self._packed = {} if packed is None else _by_run(packed)

    def rows(self, run: str) -> dict[str, Rows]:
        """Returns the run's rows of each frame that has some, in no order."""
        found = {name: tables[run].to_pylist() for name, tables in self._here.items() if run in tables}
        texts: dict[str, list[str]] = {}
        if run in self._packed:
            for row in self._packed[run].to_pylist():
                texts.setdefault(row[_NAME], []).append(row[_ROW])
        return {**found, **{name: json.loads(f"[{','.join(each)}]") for name, each in texts.items()}}


def gather(frames: Mapping[str, DataFrame | pa.Table]) -> Gathered:
    """Collects the frames. Each has the column ``run``."""
    in_spark = {name: frame for name, frame in frames.items() if isinstance(frame, DataFrame)}
    here = {name: frame for name, frame in frames.items() if isinstance(frame, pa.Table)}
    return Gathered(here, _collected(in_spark) if in_spark else None)


def _collected(frames: Mapping[str, DataFrame]) -> pa.Table:
    """Numbers stay exact: JSON keeps all their digits."""
    packed = [
        # As texts, because every call is one to the JVM.
        frame.selectExpr(
            f"'{_quoted(name)}' as {_NAME}",
            _RUN,
            f"to_json(struct(*), map('ignoreNullFields', 'false')) as {_ROW}",
        )
        for name, frame in frames.items()
    ]
    found = reduce(DataFrame.union, packed).toArrow()
    return found.set_column(2, _ROW, found[_ROW].cast(pa.large_string()))


def _quoted(name: str) -> str:
    """Returns a name of a frame, which an extension may have chosen, for a text of SQL."""
    return name.replace("\\", "\\\\").replace("'", "\\'")


def _by_run(table: pa.Table) -> dict[str, pa.Table]:
    """Returns the rows of each run, in the order that they had."""
    ordered = table.take(pc.sort_indices(table, [(_RUN, "ascending")]))
    return {part[_RUN][0].as_py(): part for part in divided(ordered)}


def divided(table: pa.Table) -> Iterator[pa.Table]:
    """Divides rows where the run changes."""
    ends: Sequence[int] = ()
    if table.num_rows:
        ends = pc.run_end_encode(table[_RUN].combine_chunks()).run_ends.to_pylist()
    for begin, end in zip([0, *ends], ends, strict=False):
        yield table.slice(begin, end - begin)
