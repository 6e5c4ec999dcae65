"""Reads some nodes of some runs: every line once, into one Parquet file for each kind of record.

A line that breaks the rules of ``node_agent.telemetry`` is counted for its boot and put into quarantine. Of
records with the same node, boot and number, the first that was written is kept.
"""

import gc
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from node_agent.apps.records import record_format
from node_agent.model.checked import Checked, Long
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.telemetry.belief import OLD_APP, Writer
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.records import AGENT, LONGEST_LINE, RecordFormat
from node_agent.telemetry.segment_files import open_regular
from node_agent.telemetry.segments import BootTally, flaw_in
from orchestrator.analytics.intake import columns
from orchestrator.analytics.intake.clocks import Births, births_of, corrected
from orchestrator.analytics.intake.files import PIECE_ROWS, Sheaf, Written
from orchestrator.analytics.intake.parts import Part
from orchestrator.analytics.intake.rules import fields_of
from orchestrator.clocks.correction import Pieces
from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT
from orchestrator.results.inputs import LATEST_NS, RunInput, read_run
from orchestrator.results.lines import Block, Line, blocks_in
from orchestrator.results.segments import Segment
from orchestrator.results.truth import DERIVED, TRUTH
from orchestrator.runs.run_directory import RunDirectory

MOST_BAD = 1000
"""Bad lines of a boot that are described; all are counted."""
HEAD_BYTES = 120
"""Of a bad line that are kept."""
_PLAIN: dict[Any, Any] = {TEXT: str, COUNT: Long, REAL: float, FLAG: bool}
_START, _STOP = tag_of(AgentStart), tag_of(AgentStop)

Row = tuple[Any, ...]


def read_parts(parts: Sequence[Part], directory: Path) -> list[Written]:
    """Reads the parts; writes files into ``directory``, with names that no other try of this task uses."""
    format = record_format()
    sheaf = Sheaf(directory, secrets.token_hex(8), _schemas(format))
    with _without_collector():
        for part in parts:
            run = read_run(RunDirectory(Path(part.directory)))
            _read_nodes(run, part.nodes, format, sheaf)
            for name in part.truth:
                _read_truth(run, name, sheaf)
        return sheaf.finish()


@contextmanager
def _without_collector() -> Iterator[None]:
    """Rows have no cycles; looking for some again and again takes as long as decoding."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _schemas(format: RecordFormat) -> dict[str, Callable[[], pa.Schema]]:
    def record_schema(kind: str) -> pa.Schema:
        return columns.arrow(columns.record_columns(format, kind))

    def truth_schema(name: str) -> pa.Schema:
        return columns.arrow(columns.truth_columns(name))

    return {
        **{columns.of_record(kind): partial(record_schema, kind) for kind in format.needed},
        **{columns.of_truth(name): partial(truth_schema, name) for name in TRUTH},
        columns.BOOT: lambda: columns.arrow(columns.BOOTS),
        columns.BAD: lambda: columns.arrow(columns.QUARANTINE),
    }


def _read_nodes(run: RunInput, nodes: Sequence[str], format: RecordFormat, sheaf: Sheaf) -> None:
    apps = {app.name: app.reader.scopes(app.plan) for app in run.apps.values()}
    births = births_of(run)
    boots: dict[tuple[str, int], _Boot] = {}
    for segment in run.segments:
        if segment.node in nodes:
            writer = Writer(run.claimed_run, segment.node, format, apps)
            key = segment.node, segment.boot
            if key not in boots:
                boots[key] = _Boot(run, segment, writer, run.clocks.get(segment.node, ()), births)
            for block in boots[key].read(segment):
                for kind, rows in block.items():
                    sheaf.add(columns.of_record(kind), run.run, rows)
    for boot in boots.values():
        sheaf.add(columns.BOOT, run.run, [boot.row()])
        sheaf.add(columns.BAD, run.run, boot.bad)


class _Boot:
    """Reads the segments of one boot, one after the other."""

    def __init__(
        self, run: RunInput, segment: Segment, writer: Writer, clock: Pieces, births: Births
    ) -> None:
        self._run = run
        self._node, self._boot = segment.node, segment.boot
        self._writer = writer
        self._clock = clock
        self._births = births
        self._tally = BootTally()
        self._getters: dict[str, Callable[[Any], Row]] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._started = False
        self._stops: list[str] = []
        self.bad: list[Row] = []

    def read(self, segment: Segment) -> Iterator[dict[str, list[Row]]]:
        """Yields rows by kind of record, some at a time."""
        name = segment.path.relative_to(self._run.directory.path).as_posix()
        try:
            file = open_regular(segment.path)
        except OSError:  # a link, a pipe, or gone meanwhile
            self._spoil(name, Line(0, 0, b""), "file")
            return
        with file:
            for block in blocks_in(file, self._writer.format.checked):
                if block.reason:
                    self._spoil(name, block.whole, block.reason)
                else:
                    yield self._rows_of(block, name)

    def _rows_of(self, block: Block[Any], name: str) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        writer, tally, format = self._writer, self._tally, self._writer.format
        first, last = self._first_ns, self._last_ns
        for number, record in enumerate(block.values):
            if wrong := flaw_in(record, self._boot, format):
                self._spoil(name, block.lines[number], wrong)
                continue
            if refusal := writer.refusal(record):
                tally.refuse(record.seq)
                self._describe(name, block.lines[number], "refused", refusal)
                continue
            disordered = tally.disordered
            if not tally.see(record.seq, record.kind):
                if tally.disordered > disordered:
                    self._describe(name, block.lines[number], "corrupt", "order")
                continue
            kind = record.kind
            row, t_ns = self._row(record)
            if kind in format.needed:
                found.setdefault(kind, []).append(row)
            first = t_ns if first is None or t_ns < first else first
            last = t_ns if last is None or t_ns > last else last
            if kind == _START:
                self._started = True
            elif kind == _STOP:
                self._stops.append(record.reason)
        self._first_ns, self._last_ns = first, last
        return found

    def _row(self, record: Any) -> tuple[Row, int]:
        """Returns the values of its columns, and its time."""
        kind = record.kind
        fields = self._getters.get(kind)
        if fields is None:
            fields = self._getters[kind] = self._getter(kind)
        if self._clock or self._births:
            return self._timed(record, kind)
        return fields(record), record.t_ns

    def _getter(self, kind: str) -> Callable[[Any], Row]:
        names = self._names[kind] = fields_of(self._writer.format, kind)[1:]
        values = attrgetter(*names)
        if self._writer.format.owners.get(kind) == AGENT:
            return values
        place = names.index("app")

        def with_app(record: Any) -> Row:
            row: Row = values(record)
            return row if row[place] else (*row[:place], OLD_APP, *row[place + 1 :])

        return with_app

    def _timed(self, record: Any, kind: str) -> tuple[Row, int]:
        plain = dict(zip(self._names[kind], self._getters[kind](record), strict=True))
        right = corrected(plain, self._clock, self._births)
        return tuple(right.values()), right["t_ns"]

    def _spoil(self, name: str, line: Line, reason: str) -> None:
        self._tally.corrupt += 1
        self._describe(name, line, "corrupt", reason)

    def _describe(self, name: str, line: Line, state: str, reason: str) -> None:
        if len(self.bad) < MOST_BAD:
            where = (self._node, self._boot, name, line.begin, line.length)
            self.bad.append((*where, state, reason, _head(line.text)))

    def row(self) -> Row:
        """Returns its row of ``columns.BOOTS``, without the run."""
        tally, missing = self._tally, self._tally.missing()
        counts = (tally.records, tally.first(), tally.last(), missing, tally.duplicates)
        bad = (tally.corrupt, tally.refused)
        stopped = bool(self._stops)
        ends = (self._first_ns, self._last_ns, self._started, stopped, max(self._stops, default=None))
        complete = self._started and stopped and missing == 0
        return (self._node, self._boot, *counts, *bad, *ends, complete)


def _head(line: bytes) -> str:
    return line[:HEAD_BYTES].decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def _read_truth(run: RunInput, name: str, sheaf: Sheaf) -> None:
    """Reads a file of the ground truth. Of somebody else's run it may contain anything."""
    try:
        file = open_regular(run.directory.radio / name)
    except OSError:
        return
    of, place = columns.of_truth(name), f"{run.directory.radio.name}/{name}"
    held: list[pa.Table] = []
    bad: list[Row] = []
    with file:
        for found in blocks_in(file, _truth(name)):
            wrong = [found.whole] if found.reason else []
            if found.values:
                held.append(_as_columns(found.values, columns.arrow(TRUTH[name])))
                if held[-1].num_rows < len(found.values):
                    wrong = _at_no_time(found)
            for line in wrong[: MOST_BAD - len(bad)]:
                where = ("", None, place, line.begin, line.length)
                bad.append((*where, "corrupt", found.reason or "time", _head(line.text)))
            if held and name not in DERIVED:
                sheaf.add_columns(of, run.run, held.pop())
            elif sum(table.num_rows for table in held) >= PIECE_ROWS:
                settled, rest = DERIVED[name].settled(pa.concat_tables(held))
                sheaf.add_columns(of, run.run, settled)
                held = [rest]
    if held:
        sheaf.add_columns(of, run.run, DERIVED[name].add(pa.concat_tables(held)))
    sheaf.add(columns.BAD, run.run, bad)


@cache
def _truth(name: str) -> Checked[Any]:
    fields = [(each, _PLAIN[kind] | None, None) for each, kind in TRUTH[name].items()]
    return Checked(msgspec.defstruct("Truth", fields, gc=False), LONGEST_LINE)


def _at_no_time(block: Block[Any]) -> list[Line]:
    """Returns the lines that ``_as_columns`` leaves out."""
    times = (value.t_ns for value in block.values)
    return [
        line
        for line, t_ns in zip(block.lines, times, strict=True)
        if t_ns is None or not 0 <= t_ns <= LATEST_NS
    ]


def _as_columns(lines: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Returns those lines of ground truth that have a time which can be meant."""
    values = zip(*map(astuple, lines), strict=True)
    table = pa.table([pa.array(each, kind) for each, kind in zip(values, schema.types, strict=True)], schema)
    times = table["t_ns"]
    return table.filter(pc.and_(pc.greater_equal(times, 0), pc.less_equal(times, LATEST_NS)))
