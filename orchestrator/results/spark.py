"""Defines what the analysis gives to the functions of a contribution that make tables and compute values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.results.columns import Columns
from orchestrator.results.inputs import AppInput, RunInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

Choose = Callable[["pa.Table"], "pa.Table"]

SUM = "decimal(38,0)"
"""The type for sums of values from nodes: it must not overflow, whatever they report."""


class Frames(Protocol):
    """The common part of ``Ingest`` and ``Reading``: the runs, and a way to make small frames from plain
    rows.
    """

    @property
    def runs(self) -> Sequence[RunInput]: ...

    def frame(self, rows: Sequence[Mapping[str, Any]], columns: Columns) -> "DataFrame": ...

    def timed(self, rows: "DataFrame") -> "DataFrame":
        """Adds to each row what is known of its run: ``measure_from_ns``, ``measure_until_ns``, ``zero_ns``
        (its first record) and ``ended_ns``.
        """
        ...


class Ingest(Frames, Protocol):
    """The input for making a table."""

    def records(self, *kinds: str) -> "DataFrame":
        """Returns the records of these kinds that are believed, each once, in the orchestrator's time. It has
        the columns of every record, and the fields of these kinds.

        ``app`` is the name of the application that wrote it; empty for the agent's own records.
        """
        ...

    def truth(self, file: str) -> "DataFrame":
        """Returns a file of the ground truth in ``radio/``, one row a line, with its run: see
        ``results.truth``.
        """
        ...

    def table(self, name: str) -> "DataFrame":
        """Returns another table of these runs."""
        ...


class Reading(Frames, Protocol):
    """The input for computing metrics and series."""

    def table(self, name: str) -> "DataFrame":
        """Returns the table's rows of these runs."""
        ...

    def columns(
        self, name: str, choose: "Choose | None" = None, only: Sequence[str] | None = None
    ) -> "pa.Table":
        """Returns the same in memory, without Spark: for what is little for each run. ``choose`` is called
        with some rows at a time and returns what is wanted of them. ``only``: these columns are read.
        """
        ...

    @property
    def times(self) -> "pa.Table":
        """Returns by run: ``measure_from_ns``, ``measure_until_ns``, ``zero_ns`` (its first record),
        ``ended_ns``.
        """
        ...

    @property
    def windows(self) -> "DataFrame":
        """Returns the same for Spark, to be joined by ``run``."""
        ...


@dataclass(frozen=True)
class Subject:
    """The run, and its application, that values are computed for. ``app``: None for the run itself.

    ``of_apps``: for the run itself, the metrics of its applications, which are computed first.
    """

    run: RunInput
    app: AppInput | None
    zero_ns: int
    ended_ns: int | None
    of_apps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def window_ns(self) -> int:
        """Returns the length of the measured window."""
        manifest = self.run.manifest
        begin, end = manifest.get("measure_from_ns"), manifest.get("measure_until_ns")
        return max(end - begin, 0) if begin is not None and end is not None else 0

    def seconds(self, t_ns: int | None) -> float | None:
        """Returns seconds since the first record of the run."""
        return None if t_ns is None else round((t_ns - self.zero_ns) / 1e9, 3)


def in_window(t_ns: str) -> "Column":
    """Returns a condition: the time in the column ``t_ns`` is in the measured window."""
    from pyspark.sql import functions as F

    return F.expr(inside(t_ns))


def inside(t_ns: str) -> str:
    """Returns the same as a text of SQL."""
    return f"coalesce({t_ns} >= measure_from_ns and {t_ns} < measure_until_ns, false)"


def windows_of(runs: "DataFrame") -> "DataFrame":
    """Returns the measured windows in the table ``runs``, to be joined by ``run``."""
    from pyspark.sql import functions as F

    return F.broadcast(runs.select("run", "measure_from_ns", "measure_until_ns", "ended_ns"))


def rounded(value: float) -> float:
    """Rounds a figure as it is stored."""
    return round(value, 9)


def half_up(value: float, step: Decimal) -> float:
    """Rounds to a multiple of ``step``: by the digits that one sees, and up if two are equally near."""
    return float(Decimal(repr(value)).quantize(step, ROUND_HALF_UP))


def over_window(amount: float, window_ns: int) -> float:
    """Returns the amount per second of a window; 0 without one."""
    return rounded(amount * 1e9 / window_ns) if window_ns else 0.0
