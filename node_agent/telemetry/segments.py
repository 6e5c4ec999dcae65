"""The reading side of telemetry: the records of a node's segments, and proof of what is missing.

A process that dies may tear the last line of its boot's last segment: that is tolerated and counted. A
line that cannot be read anywhere else is corruption.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from node_agent.model.telemetry import AgentStop, Envelope
from node_agent.telemetry.segment_log import SegmentName, segment_names

_STOP = AgentStop.__struct_config__.tag


class Completeness(msgspec.Struct, frozen=True):
    """``records`` are distinct readable records; ``missing`` are gaps below a boot's highest ``seq``."""

    records: int
    boots: int
    missing: int
    duplicates: int
    torn: int
    corrupt: int
    unclosed_boots: int

    @property
    def complete(self) -> bool:
        flaws = self.missing + self.duplicates + self.torn + self.corrupt + self.unclosed_boots
        return self.boots > 0 and flaws == 0


class _Line(NamedTuple):
    boot: int
    state: Literal["record", "torn", "corrupt"]
    raw: bytes
    seq: int = -1
    kind: str = ""


def read_records(directory: Path) -> Iterator[dict[str, Any]]:
    """Readable records in the order in which they were written, duplicates included."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for line in _lines(directory):
        if line.state == "record":
            yield decode(line.raw)


def tuple_by_tuple(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records of several tuples as one for each, with its share of what is told of all together."""
    for record in records:
        count = record.get("tuples", 1)
        if count == 1:
            yield record
            continue
        sizes, births = record.get("sizes"), record.get("births")
        alone = {name: value for name, value in record.items() if name not in ("tuples", "sizes", "births")}
        if "took_ns" in record:
            alone["took_ns"] = record["took_ns"] // count
        for place in range(count):
            single = {**alone, "tau": record["tau"] + place, "size": record["size"] // count}
            if sizes:
                single["size"] = sizes[place]
            if births:
                single["born_ns"] = record["born_ns"] + births[place]
            yield single


def inspect(directory: Path) -> Completeness:
    tallies = {name.boot: _BootTally() for name in segment_names(directory)}
    for line in _lines(directory):
        tallies[line.boot].add(line)
    # Boots are numbered from 1 without gaps, so a boot whose files are gone altogether still shows.
    boots = max(tallies, default=0)
    vanished = boots - len(tallies)
    found = tallies.values()
    return Completeness(
        records=sum(boot.records for boot in found),
        boots=boots,
        missing=sum(boot.highest + 1 - boot.records for boot in found),
        duplicates=sum(boot.duplicates for boot in found),
        torn=sum(boot.torn for boot in found),
        corrupt=sum(boot.corrupt for boot in found),
        unclosed_boots=vanished + sum(boot.last_kind != _STOP for boot in found),
    )


class _BootTally:
    """Counts one boot's lines in constant memory as long as they come in order."""

    def __init__(self) -> None:
        self.records = 0
        self.duplicates = 0
        self.torn = 0
        self.corrupt = 0
        self.highest = -1
        self.last_kind = ""
        self._seen_below = 0  # every seq below this has been seen
        self._seen_beyond: set[int] = set()

    def add(self, line: _Line) -> None:
        if line.state == "torn":
            self.torn += 1
        elif line.state == "corrupt":
            self.corrupt += 1
        elif line.seq < self._seen_below or line.seq in self._seen_beyond:
            self.duplicates += 1
        else:
            self._see(line)

    def _see(self, line: _Line) -> None:
        self.records += 1
        if line.seq > self.highest:
            self.highest, self.last_kind = line.seq, line.kind
        self._seen_beyond.add(line.seq)
        while self._seen_below in self._seen_beyond:
            self._seen_beyond.remove(self._seen_below)
            self._seen_below += 1


def _lines(directory: Path) -> Iterator[_Line]:
    names = segment_names(directory)
    last_of_boot = {name.boot: name for name in names}
    for name in names:
        with (directory / str(name)).open("rb") as segment:
            for raw in segment:
                yield _classify(raw, name, may_be_torn=name == last_of_boot[name.boot])


_decode_envelope = msgspec.json.Decoder(Envelope).decode


def _classify(raw: bytes, name: SegmentName, may_be_torn: bool) -> _Line:
    try:
        envelope = _decode_envelope(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        torn = may_be_torn and not raw.endswith(b"\n")
        return _Line(name.boot, "torn" if torn else "corrupt", raw)
    if envelope.boot != name.boot or envelope.seq < 0:
        return _Line(name.boot, "corrupt", raw)
    return _Line(name.boot, "record", raw, envelope.seq, envelope.kind)
