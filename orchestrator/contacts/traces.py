"""Reads contact traces: who met whom, from when until when.

- ``csv``: lines ``from,to,t_up,t_down`` below a header of these words; both can send.
- ``one``: connectivity reports of the ONE simulator, lines ``time CONN node node up`` and ``… down``. Other
  events of its files are skipped. A connection that the file does not close ends with the file's last line.
- ``crawdad``: contact lists as CRAWDAD has them, lines ``id id start end …``; further columns are skipped.
  Where both nodes have seen each other, the contact lasts while one of them did.

Times are seconds. Every problem is listed, with its line; what a reader returns beside problems is not used.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

MOST_CONTACTS = 1_000_000
"""Of one trace, or of one plan: they must fit into memory."""
MOST_PROBLEMS = 20
CSV_COLUMNS = ("from", "to", "t_up", "t_down")

TraceFormat = Literal["csv", "one", "crawdad"]
Pair = tuple[str, str]


class Meeting(NamedTuple):
    """A line of a trace: the nodes as the file names them, and when."""

    one: str
    other: str
    up: float
    down: float
    line: int


class TraceProblem(NamedTuple):
    line: int | None
    message: str
    hint: str = ""


@dataclass
class ContactTrace:
    """What a file says. ``end``: its last moment."""

    meetings: list[Meeting] = field(default_factory=list)
    problems: list[TraceProblem] = field(default_factory=list)
    end: float = 0.0

    def wrong(self, line: int | None, message: str, hint: str = "") -> None:
        self.problems.append(TraceProblem(line, message, hint))

    @property
    def is_full(self) -> bool:
        return len(self.problems) >= MOST_PROBLEMS or len(self.meetings) > MOST_CONTACTS


def read_contacts(text: str, written_as: TraceFormat, merge: bool = False) -> ContactTrace:
    """Reads a file's text. ``merge``: joins contacts of two nodes that overlap, which is a problem else."""
    trace = ContactTrace()
    _READERS[written_as](text, trace)
    if len(trace.meetings) > MOST_CONTACTS:
        trace.wrong(
            None, f"more than {MOST_CONTACTS:,} contacts: that is too many", "use a part of the trace"
        )
    elif not trace.problems and not trace.meetings:
        trace.wrong(None, "holds no contact", f"is it in another format than {written_as}?")
    elif not merge and not trace.is_full:
        _find_overlaps(trace, ordered=written_as == "crawdad")
    trace.end = max([trace.end, *(meeting.down for meeting in trace.meetings)])
    return trace


def format_of(name: str) -> TraceFormat | None:
    """Returns the format that a file's name stands for; a trailing .gz only means that it is compressed."""
    stem = name.lower().removesuffix(".gz")
    if stem.endswith(".csv"):
        return "csv"
    if stem.endswith((".one", "connectivityonereport.txt")):
        return "one"
    return "crawdad" if stem.endswith(".dat") else None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if content and not content.startswith(("#", "%")):
            yield number, content


def _read_csv(text: str, trace: ContactTrace) -> None:
    header = None
    for number, line in _lines(text):
        row = [entry.strip() for entry in line.split(",")]
        if header is None:
            header = tuple(entry.lower() for entry in row)
            if header != CSV_COLUMNS:
                return trace.wrong(number, f"the first line must be {','.join(CSV_COLUMNS)}")
        elif len(row) != len(CSV_COLUMNS):
            trace.wrong(number, f"{len(row)} values, expected {len(CSV_COLUMNS)}: {','.join(CSV_COLUMNS)}")
        else:
            up, down = _time(row[2], "t_up", number, trace), _time(row[3], "t_down", number, trace)
            if up is not None and down is not None:
                if down <= up:
                    trace.wrong(number, f"goes down at {down:g} s, but up only at {up:g} s")
                else:
                    _meet(trace, row[0], row[1], up, down, number)
        if trace.is_full:
            return None
    return None


def _read_crawdad(text: str, trace: ContactTrace) -> None:
    for number, line in _lines(text):
        row = line.replace(",", " ").split()
        if len(row) < 4:
            trace.wrong(number, f"{len(row)} values, expected at least 4: id id start end")
        else:
            start, end = _time(row[2], "start", number, trace), _time(row[3], "end", number, trace)
            if start is not None and end is not None:
                if end < start:
                    trace.wrong(number, f"ends at {end:g} s, but begins only at {start:g} s")
                else:
                    _meet(trace, row[0], row[1], start, end, number)
        if trace.is_full:
            return


_MESSAGE_EVENTS = frozenset(("C", "S", "DE", "D", "DR", "R", "A", "M"))
"""What ONE's files may tell beside connections."""


def _read_one(text: str, trace: ContactTrace) -> None:
    open_since: dict[Pair, tuple[float, int]] = {}
    now = -math.inf
    for number, line in _lines(text):
        row = line.split()
        if len(row) >= 2 and row[1] in _MESSAGE_EVENTS:
            continue
        if len(row) != 5 or row[1] != "CONN" or row[4].lower() not in ("up", "down"):
            trace.wrong(number, "not a line of a connectivity report", "write it like 12.5 CONN n01 n02 up")
        elif (t := _time(row[0], "time", number, trace)) is not None:
            if t < now:
                trace.wrong(number, f"time runs backwards: {t:g} s after {now:g} s")
            now = max(t, now)
            one, other = sorted(row[2:4])
            pair, before = (one, other), open_since.get((one, other))
            if row[4].lower() == "up":
                if before is not None:
                    trace.wrong(number, f"{row[2]} and {row[3]} are connected already (see line {before[1]})")
                open_since[pair] = t, number
            elif before is None:
                trace.wrong(number, f"{row[2]} and {row[3]} part, but are not connected")
            else:
                del open_since[pair]
                if t > before[0]:
                    _meet(trace, *pair, before[0], t, before[1])
        if trace.is_full:
            return
    for pair, (since, number) in open_since.items():
        if now > since:
            _meet(trace, *pair, since, now, number)
    trace.end = max(now, 0.0)


_READERS: dict[TraceFormat, Callable[[str, ContactTrace], None]] = {
    "csv": _read_csv,
    "one": _read_one,
    "crawdad": _read_crawdad,
}


def _time(token: str, what: str, line: int, trace: ContactTrace) -> float | None:
    try:
        value = float(token)
    except ValueError:
        trace.wrong(line, f"{what} is not a number: {token[:40]!r}")
        return None
    if not math.isfinite(value) or abs(value) > 1e12:
        trace.wrong(line, f"{what} is not a time in seconds: {token[:40]!r}")
        return None
    return value


def _meet(trace: ContactTrace, one: str, other: str, up: float, down: float, line: int) -> None:
    if one == other:
        trace.wrong(line, f"{one[:40]} meets itself")
    else:
        trace.meetings.append(Meeting(one, other, up, down, line))


def _find_overlaps(trace: ContactTrace, ordered: bool) -> None:
    """``ordered``: a list of what each node saw, so contacts of A with B may overlap those of B with A."""
    pairs: dict[Pair, list[Meeting]] = {}
    for meeting in trace.meetings:
        one, other = meeting[:2] if ordered else sorted(meeting[:2])
        pairs.setdefault((one, other), []).append(meeting)
    for meetings in pairs.values():
        meetings.sort(key=lambda meeting: (meeting.up, meeting.down))
        for earlier, later in pairwise(meetings):
            if later.up < earlier.down and not trace.is_full:
                text = (
                    f"{later.one} and {later.other} meet at {later.up:g} s, but are together from "
                    f"{earlier.up:g} to {earlier.down:g} s already (line {earlier.line})"
                )
                trace.wrong(later.line, text, "mend the file, or let them count as one: overlaps: merge")
