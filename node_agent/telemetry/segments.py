"""Reads telemetry: the records of a node's segments, and proof of what is missing.

A process that dies may tear the last line of its boot's last segment; that is tolerated and counted. An
unreadable line anywhere else is corruption. A record that its writer cannot have written is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from node_agent.model.checked import Checked, Refused
from node_agent.model.intervals import Intervals
from node_agent.model.telemetry import AgentStop
from node_agent.telemetry.belief import Writer
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.records import AGENT_FORMAT, LONGEST_LINE, RecordFormat
from node_agent.telemetry.segment_files import SegmentName, lines_in, open_regular, segment_names

_STOP = tag_of(AgentStop)
MOST_GAPS = 16_384
"""The limit of gaps between the numbers of one boot's records: an agent writes them in order."""


class Completeness(msgspec.Struct, frozen=True):
    """``records``: distinct believable records. ``missing``: gaps below a
    boot's highest ``seq``; refused records fill gaps.

    ``unclosed_boots`` did not end in order; ``vanished_boots`` are those of them without any file.
    ``surplus_boots`` were never started. ``refused`` records cannot be this node's. ``reasons`` counts why
    lines were corrupt or refused.
    """

    records: int
    boots: int
    missing: int
    duplicates: int
    torn: int
    corrupt: int
    unclosed_boots: int
    vanished_boots: int = 0
    refused: int = 0
    reasons: dict[str, int] = {}
    surplus_boots: int = 0

    @property
    def complete(self) -> bool:
        in_lines = self.missing + self.duplicates + self.torn + self.corrupt + self.refused
        return self.boots > 0 and in_lines + self.unclosed_boots + self.surplus_boots == 0


class _Line(NamedTuple):
    boot: int
    state: Literal["record", "torn", "corrupt", "refused"]
    reason: str = ""
    raw: bytes = b""
    record: Any = None


def read_records(
    directory: Path, writer: Writer | None = None, format: RecordFormat = AGENT_FORMAT
) -> Iterator[dict[str, Any]]:
    """Yields believable records in the order in which they were written, including duplicates.

    Without a ``writer`` it checks only that they fit ``format``, not whether they can be this node's.
    """
    read = Checked[dict[str, Any]](dict[str, Any], LONGEST_LINE).decode
    for line in _lines(directory, writer, writer.format if writer is not None else format):
        if line.state == "record":
            with suppress(Refused):  # extra fields are not checked before
                yield read(line.raw)


def inspect(
    directory: Path,
    writer: Writer | None = None,
    starts: int = 0,
    notice: Callable[[Any], None] | None = None,
    format: RecordFormat = AGENT_FORMAT,
) -> Completeness:
    """Counts what is there and what is missing. ``writer`` and ``format`` as for ``read_records``.

    ``starts``: how often the agent was started, 0 if unknown. A node that lost its disk counts its boots from
    1 again; one with more boots invented them. ``notice`` is called once with each believable record.
    """
    tallies = {name.boot: BootTally() for name in segment_names(directory)}
    reasons: dict[str, int] = {}
    for line in _lines(directory, writer, writer.format if writer is not None else format):
        if tallies[line.boot].add(line) and notice is not None:
            notice(line.record)
        if line.state in ("corrupt", "refused"):
            reasons[line.reason] = reasons.get(line.reason, 0) + 1
    if disordered := sum(boot.disordered for boot in tallies.values()):
        reasons["order"] = disordered
    # Boots are numbered from 1 without gaps, so a boot without files still shows.
    boots = max(*tallies, starts) if tallies else 0
    vanished = boots - len(tallies)
    found = tallies.values()
    return Completeness(
        records=sum(boot.records for boot in found),
        boots=boots,
        missing=sum(boot.missing() for boot in found),
        duplicates=sum(boot.duplicates for boot in found),
        torn=sum(boot.torn for boot in found),
        corrupt=sum(boot.corrupt for boot in found),
        unclosed_boots=vanished + sum(boot.last_kind != _STOP for boot in found),
        vanished_boots=vanished,
        refused=sum(boot.refused for boot in found),
        reasons=reasons,
        surplus_boots=max(0, boots - starts) if starts else 0,
    )


class BootTally:
    """Counts one boot's lines in bounded memory: a record out of order beyond ``MOST_GAPS`` is corrupt."""

    def __init__(self) -> None:
        self.records = 0
        self.duplicates = 0
        self.torn = 0
        self.corrupt = 0
        self.disordered = 0
        self.refused = 0
        self.highest = -1
        self.last_kind = ""
        self._since = 0
        """The numbers from here to ``highest`` were seen, but are not in ``_seen`` yet."""
        self._seen = Intervals()
        self._refused = Intervals()

    def add(self, line: _Line) -> bool:
        """Returns whether it is a new record."""
        match line.state:
            case "torn":
                self.torn += 1
            case "corrupt":
                self.corrupt += 1
            case "refused":
                self.refuse(line.record.seq)
            case "record":
                return self.see(line.record.seq, line.record.kind)
        return False

    def refuse(self, seq: int) -> None:
        """Counts a record that cannot be this node's."""
        self.refused += 1
        if len(self._refused) < MOST_GAPS:
            self._refused.add(seq)

    def see(self, seq: int, kind: str) -> bool:
        """Counts a record that is believed; returns whether it is new."""
        if seq == self.highest + 1:
            self.highest, self.last_kind = seq, kind
            self.records += 1
            return True
        self._settle()
        if seq in self._seen:
            self.duplicates += 1
            return False
        if len(self._seen) >= MOST_GAPS:
            self.corrupt += 1
            self.disordered += 1
            return False
        self.records += 1
        self._seen.add(seq)
        if seq > self.highest:
            self.highest, self.last_kind = seq, kind
            self._since = seq + 1
        return True

    def first(self) -> int | None:
        """Returns the lowest number of a record that is believed."""
        self._settle()
        return next((first for first, _ in self._seen), None)

    def last(self) -> int | None:
        """Returns the highest number of a record, also of those that are refused."""
        self._settle()
        return max((last for _, last in (*self._seen, *self._refused)), default=None)

    def missing(self) -> int:
        self._settle()
        present = Intervals()
        for first, last in (*self._seen, *self._refused):
            present.add(first, last)
        beyond = max((last for _, last in present), default=-1) + 1
        return beyond - sum(last - first + 1 for first, last in present)

    def _settle(self) -> None:
        """Notes the numbers that came one after the other."""
        self._seen.add(self._since, self.highest)
        self._since = self.highest + 1


def _lines(directory: Path, writer: Writer | None, format: RecordFormat) -> Iterator[_Line]:
    names = segment_names(directory)
    last_of_boot = {name.boot: name for name in names}
    for name in names:
        try:
            segment = open_regular(directory / str(name))
        except OSError:  # a link, a pipe, or gone meanwhile
            yield _Line(name.boot, "corrupt", "file")
            continue
        with segment:
            for raw in lines_in(segment):
                if raw is None:
                    yield _Line(name.boot, "corrupt", "size")
                else:
                    may_be_torn = name == last_of_boot[name.boot]
                    yield _classify(raw, name, writer, format, may_be_torn)


def _classify(
    raw: bytes, name: SegmentName, writer: Writer | None, format: RecordFormat, may_be_torn: bool
) -> _Line:
    record, wrong = judge(raw, name.boot, format)
    if record is None and may_be_torn and not raw.endswith(b"\n"):
        return _Line(name.boot, "torn")
    if wrong:
        return _Line(name.boot, "corrupt", wrong)
    if writer is not None and (refusal := writer.refusal(record)):
        return _Line(name.boot, "refused", refusal, raw, record)
    return _Line(name.boot, "record", "", raw, record)


def judge(raw: bytes, boot: int, format: RecordFormat) -> tuple[Any, str]:
    """Returns the record in a line of this boot's segments, if it can be decoded, and why it is corrupt;
    empty if it is not.
    """
    try:
        record = format.decode(raw)
    except Refused as error:
        return None, error.reason
    return record, flaw_in(record, boot, format)


def flaw_in(record: Any, boot: int, format: RecordFormat) -> str:
    """Returns why a record of this boot's segments is corrupt; empty if it is not."""
    return "boot" if record.boot != boot else format.flaw(record)
