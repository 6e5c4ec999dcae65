"""What an application, the core or an extension adds to the analysis: tables, metrics, figures, sections.

Each thing is declared once, and everything else is derived from it: the names that ``expect:`` knows, the
columns of ``rove analyze`` and of the report, the means of a sweep, the tables in ``docs/telemetry.md``.

    CONTRIBUTION = Contribution(
        kind="query",
        tables=(Table("queues", "a sample of a queue", COLUMNS, ("t_ns", "replica"), make_queues),),
        figures=(Figures(queue_frames, queue_values, (Metric("queue_max", "the longest queue"),)),),
        sections=(Section(450, queue_section),),
    )

A package offers it by an entry point of the group ``rove.analytics``. Functions that need Spark or
matplotlib import them when they are called, or are given by ``Later``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from orchestrator.results.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from node_agent.telemetry.belief import AppScopes
    from orchestrator.clocks.correction import Pieces
    from orchestrator.results.inputs import AppInput
    from orchestrator.results.spark import Ingest, Reading, Subject
    from orchestrator.results.svg import Figure
    from orchestrator.results.views import Cell, View

Rows = list[dict[str, Any]]
"""Rows that Spark computed, as plain values."""

ANY = "*"
"""Used instead of a kind: the contribution is about applications of every kind."""


class Later:
    """A function ``package.module:name`` whose module is imported when it is called."""

    def __init__(self, reference: str) -> None:
        self.reference = reference

    def function(self) -> Callable[..., Any]:
        module, _, name = self.reference.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found

    def __call__(self, *arguments: Any) -> Any:
        return self.function()(*arguments)


@dataclass(frozen=True)
class AsRead:
    """Says that a table has the rows of one kind of record (``record``), or of one file of the ground truth
    (``truth``), as they were read; such a table is written without Spark.

    ``names``: by column, its name there if that is another. ``where``: chooses rows; it gets them with the
    names that they have there, and gives a column of truth values.
    """

    record: str = ""
    truth: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    where: "Callable[[pa.Table], pa.ChunkedArray] | None" = None


@dataclass(frozen=True, eq=False)
class Table:
    """A table: one row is ``text``. ``make`` gives a frame with at least ``columns``; one that fits into
    memory may also be given as a table of pyarrow, and one whose rows are as they were read as ``AsRead``.

    Every table has the column ``run``; an application's has ``app``, too. Rows are written in the order of
    the columns in ``order``, so that equal input gives equal files. ``shared``: other tables are made of it.
    """

    name: str
    text: str
    columns: Columns
    order: tuple[str, ...]
    make: Callable[["Ingest"], "DataFrame | pa.Table | AsRead"]
    shared: bool = False


@dataclass(frozen=True)
class Column:
    """Says how a metric is shown in a table; columns are ordered by ``place``.

    ``digits``: None gives the largest value of the column three digits. ``short``: the heading in
    milliseconds, used if all values are below a second. Values above ``bad_above`` are shown in bold.
    """

    place: int
    heading: str
    """May have two lines."""
    factor: float = 1.0
    digits: int | None = None
    short: str | None = None
    bad_above: float | None = None


@dataclass(frozen=True)
class Metric:
    """A figure of merit in ``summary.json``. ``text`` is its definition, in Markdown.

    ``shape`` is its type. A single number can be used in ``expect:``; for other types, set ``expect`` to
    False. ``averaged``: sweeps show its mean over seeds. ``compared``: sweeps also show its ratio to that at
    the least value of a ``Factor``. ``activity``: a value above 0 shows that the application did something.
    ``optional``: tables leave it out where no run has it.
    ``meaning``: a word and a short explanation for the report. ``gain``: what the ratio is one of, for the
    report's heading. ``headline``: the ratio is also said in words, on the console and in the report:
    ``in_words`` stands between the names of the two cells.
    """

    name: str
    text: str
    unit: str = ""
    better: Literal["more", "less", ""] = ""
    shape: Any = float | int | None
    optional: bool = False
    expect: bool = True
    averaged: bool = False
    compared: bool = False
    activity: bool = False
    console: Column | None = None
    report: Column | None = None
    of_each_run: bool = False
    """Whether the report's table of single runs shows it."""
    gain: str = ""
    headline: bool = False
    in_words: str = "has {times} the {what} of"
    meaning: tuple[str, str] | None = None

    def is_known(self, cells: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a table of these cells has a column of it."""
        found = [cell["metrics"][self.name] for cell in cells if self.name in cell["metrics"]]
        if not self.optional:
            return bool(found)
        return any(each and each["mean"] is not None for each in found)


@dataclass(frozen=True, eq=False)
class Figures:
    """Metrics and series, computed in two steps.

    ``frames`` returns small frames by name, each with the column ``run`` (and ``app``); all frames of all
    contributions are collected in one Spark job. What needs no Spark may be a table of pyarrow. ``values``
    turns the rows of one run or application into plain values by name: those of ``metrics`` and ``series``.
    Only an ``optional`` metric may be left out.

    ``series``: names and types of values for sections and drawings. Those in ``summary`` are also in
    ``summary.json``; those in ``flaws`` are counts that are added to its ``telemetry``.
    """

    frames: Callable[["Reading"], Mapping[str, "DataFrame | pa.Table"]]
    values: Callable[["Subject", Mapping[str, Rows]], Mapping[str, Any]]
    metrics: tuple[Metric, ...] = ()
    series: Mapping[str, Any] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the report: returns HTML, or an empty text. It must escape everything that comes from
    outside.

    Sections are ordered by ``place``: see ``analytics.report``.
    """

    place: int
    render: Callable[["View"], str]


@dataclass(frozen=True)
class Drawing:
    """A figure of the report's section ``section``; returns None if there is nothing to draw."""

    place: int
    draw: Callable[[Sequence["Cell"]], "Figure | None"]
    section: Literal["figures", "radio"] = "figures"


@dataclass(frozen=True)
class Factor:
    """A key of the experiment file, such as ``replicas``. In a sweep, other values are compared with its
    least one.
    """

    name: str
    short: str
    text: str


class BreakdownColumn(NamedTuple):
    metric: str
    report: Column | None
    console: Column | None


@dataclass(frozen=True)
class Breakdown:
    """A metric whose value has figures for parts, such as ``sinks`` by name.
    ``one`` is the word for a part.
    """

    metric: str
    title: str
    one: str
    columns: tuple[BreakdownColumn, ...]
    note: str


class Ends(NamedTuple):
    """The nodes where an application's data begins, and those that consume it."""

    sources: tuple[str, ...]
    sinks: tuple[str, ...]


@dataclass(frozen=True)
class PlanReader:
    """Reads the plan of one kind of application for the analysis.

    ``plan`` reads it from its entry in the manifest; None if it cannot. ``places``: the names of what runs on
    each node. ``scopes``: what each part can report about; other records are not believed. ``births``: by
    origin, the clock that the births of its tuples were read from.
    """

    plan: Callable[[Mapping[str, Any]], Any]
    ends: Callable[[Any], Ends]
    places: Callable[[Any], Mapping[str, Sequence[str]]]
    scopes: Callable[[Any], "AppScopes"]
    births: Callable[[Mapping[str, "Pieces"], Any], Mapping[str, "Pieces"]] = lambda clocks, plan: {}


def _no_notes(entry: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    return ()


@dataclass(frozen=True, eq=False)
class Contribution:
    """``kind``: the kind of applications that it is about; ``ANY``: every kind; empty: every run as a whole.

    ``reader``: set only in the contribution that is registered under the name of the kind. ``applies``: says
    whether it is about this application of the kind. Raise ``version`` when values are computed in another
    way. ``share``: returns from an application's metrics what arrived of what should have, or None; shares
    are compared between the applications of a run.
    """

    kind: str = ""
    version: int = 1
    reader: PlanReader | None = None
    applies: Callable[["AppInput"], bool] = lambda app: True
    tables: tuple[Table, ...] = ()
    figures: tuple[Figures, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    sections: tuple[Section, ...] = ()
    factors: tuple[Factor, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    share: Callable[[Mapping[str, Any]], float | None] | None = None
    notes: Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Sequence[str]] = _no_notes
    """Returns sentences below the results, from the application's entry in a summary and its metrics in all
    runs.
    """

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(metric for figures in self.figures for metric in figures.metrics)
