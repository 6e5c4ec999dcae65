"""The files of a run that grow while it goes on, each as a queue of checked items in the order written.

Every line is decoded and checked by the code that the verdict uses. A line that is refused becomes an item of
its own kind, so that it is counted where it stood.
"""

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from node_agent.apps.records import record_format
from node_agent.model.checked import Checked, Moment, Refused
from node_agent.model.host_load import LoadSample, read_sample
from node_agent.telemetry.belief import Writer
from node_agent.telemetry.records import RecordFormat
from node_agent.telemetry.segment_files import SegmentName, segments_among
from orchestrator.live.inside import names_inside
from orchestrator.live.run_clock import RunClock
from orchestrator.live.tail import MOST_SKIPPED, PIECE, Allowance, Tail

EVENT, HOST, POSITION, LINK, DELIVERY, RECORD, REFUSED = range(7)
"""Kinds of items."""
OUT_OF_TIME = "time"
"""Why a record is not shown that cannot have been written at the time it names. The verdict believes it."""
TWICE = "twice"
MOST_REFUSED = 1024 * 1024
"""Bytes of refused lines at the beginning of a node's record, before its first record is not waited for."""
LINE_COST = 64
"""What a line costs at least, in bytes of a poll's budget: short ones take time and memory, too."""
SEGMENT_COST = 4096
LONGEST_EVENT = 1024 * 1024
LONGEST_TRUTH = 4096
Metres = Annotated[float, Meta(ge=-1e7, le=1e7)]
Frames = Annotated[int, Meta(ge=0, le=2**40)]
Name = Annotated[str, Meta(max_length=100)]


class Item(NamedTuple):
    """One checked line. ``t_ns``: on the run's clock, never before that of an earlier line of its file.

    ``size``: bytes of the line. An item of kind REFUSED stands for all lines that were refused one after the
    other: ``record`` says how many, by state (``corrupt`` or ``refused``) and reason.
    """

    kind: int
    node: str
    t_ns: int
    record: Any
    size: int


class Position(Struct, frozen=True):
    t_ns: Moment
    node: Name
    x: Metres
    y: Metres


class Link(Struct, frozen=True):
    t_ns: Moment
    src: Name
    dst: Name
    up: bool
    cost: float | None = None


class Delivery(Struct, frozen=True):
    """``attempted`` and ``delivered``: frames since the one before about the same link."""

    t_ns: Moment
    src: Name
    dst: Name
    snr_db: float | None = None
    attempted: Frames = 0
    delivered: Frames = 0


_events: Checked[dict[str, Any]] = Checked(dict[str, Any], LONGEST_EVENT)


class Source:
    """One file, or the segments of one node. ``order`` decides between items of the same time."""

    kind = EVENT
    node = ""
    counts_refused = False
    """Whether lines that are refused are items, too."""

    def __init__(self, order: int, tail: "Tail | SegmentsTail") -> None:
        self.order = order
        self.at_end = False
        self.items: deque[tuple[int, Any, int, int]] = deque()
        """Time as it was written, record, size, kind."""
        self._tail = tail
        self._last_ns = -(2**63)
        self._key: tuple[int, int] | None = None

    def look(self) -> None:
        self._tail.look()

    def fill(self, most: int = PIECE) -> int:
        """Reads the next lines; returns what it cost, in bytes: those of lines that are left out, too."""
        tail = self._tail
        too_long, cost = tail.too_long, tail.cost
        lines, self.at_end = tail.read(most)
        for line in lines:
            self._take(line)
        if more := tail.too_long - too_long:
            self._refuse("corrupt", "size", 0, more)
        return max(tail.cost - cost, LINE_COST * len(lines))

    def key_ns(self, clock: RunClock) -> int | None:
        """Returns the time of the next item, on the run's clock; None if there is none."""
        while self.items:
            if self._key is not None and self._key[1] == clock.version:
                return self._key[0]
            t_ns, _, _, kind = self.items[0]
            found = self._last_ns if kind == REFUSED else self._placed(t_ns, clock)
            if kind != REFUSED and not clock.is_possible(found):
                written, _, size, _ = self.items.popleft()
                if self.counts_refused:
                    self.items.appendleft((written, {("corrupt", OUT_OF_TIME): 1}, size, REFUSED))
                continue
            self._key = max(found, self._last_ns), clock.version
            return self._key[0]
        return None

    def first_ns(self, clock: RunClock) -> int | None:
        """Returns the time of the first record that is waiting, even if it cannot be true."""
        for t_ns, record, _, kind in self.items:
            if kind != REFUSED or ("corrupt", OUT_OF_TIME) in record:
                return self._placed(t_ns, clock)
        return None

    @property
    def has_begun(self) -> bool:
        """Whether a first record is waiting, or none is to be had: at the end, or after much refused.

        Quick: refused lines that follow one another are one item.
        """
        if self.at_end or any(kind != REFUSED for _, _, _, kind in self.items):
            return True
        return self._tail.skipped + sum(size for _, _, size, _ in self.items) >= MOST_REFUSED

    def pop(self, key_ns: int) -> Item:
        """Returns the next item, whose ``key_ns`` was just asked for."""
        _, record, size, kind = self.items.popleft()
        self._key = None
        self._last_ns = key_ns
        return Item(kind, self.node, key_ns, record, size)

    def close(self) -> None:
        self._tail.close()

    def _placed(self, t_ns: int, clock: RunClock) -> int:
        return clock.corrected(self.node, t_ns)

    def _take(self, line: bytes) -> None:
        raise NotImplementedError

    def _refuse(self, state: str, why: str, size: int, lines: int = 1) -> None:
        if not self.counts_refused:
            return
        if self.items and self.items[-1][3] == REFUSED:
            written, counts, before, _ = self.items.pop()
            counts[state, why] = counts.get((state, why), 0) + lines
            self.items.append((written, counts, before + size, REFUSED))
        else:
            self.items.append((0, {(state, why): lines}, size, REFUSED))


class Events(Source):
    def __init__(self, order: int, path: Path, allowance: Allowance | None = None) -> None:
        super().__init__(order, Tail([path], LONGEST_EVENT, None, allowance))
        self.early = True
        """Until the event that nodes are brought up: no node can have recorded anything before."""

    def pop_early(self, clock: RunClock, before_ns: int) -> list[Item]:
        found = []
        while self.early and self.items:
            event = self.items[0][1]
            if event.get("phase") == "up":
                self.early = False
                if event.get("state") != "started":
                    break
            _, record, size, kind = self.items.popleft()
            found.append(Item(kind, "", before_ns, record, size))
        return found

    def _take(self, line: bytes) -> None:
        try:
            event = _events.decode(line)
        except Refused:
            return  # torn by a crash
        self.items.append((0, event, len(line), EVENT))

    def _placed(self, t_ns: int, clock: RunClock) -> int:
        return clock.event_ns(self.items[0][1])


class Truth(Source):
    """A file of the radio's ground truth."""

    def __init__(self, order: int, tail: Tail, kind: int, shape: type[Any]) -> None:
        super().__init__(order, tail)
        self.kind = kind
        self._decode = Checked[Any](shape, LONGEST_TRUTH).decode

    def _take(self, line: bytes) -> None:
        try:
            found = self._decode(line)
        except Refused:
            return
        self.items.append((found.t_ns, found, len(line), self.kind))


class HostLoad(Source):
    """The load of one machine: a node's own, or with an empty name that of all nodes."""

    def __init__(self, order: int, node: str, tail: Tail) -> None:
        super().__init__(order, tail)
        self.node = node
        self._read: Callable[[bytes], LoadSample] = read_sample

    def _take(self, line: bytes) -> None:
        try:
            found = self._read(line)
        except Refused:
            return
        self.items.append((found.t_ns, found, len(line), HOST))


class Records(Source):
    """What one node recorded. ``writer`` is None where no application of the run is known here."""

    kind = RECORD
    counts_refused = True

    def __init__(self, order: int, node: str, tail: "SegmentsTail", writer: Writer | None) -> None:
        super().__init__(order, tail)
        self.node = node
        self._segments = tail
        self._writer = writer
        self._format: RecordFormat = writer.format if writer is not None else record_format()
        self._seen = (0, -1)
        self.latest_ns = -1
        """The latest time that was read, by the node's own clock; negative before there is a record."""

    def _take(self, line: bytes) -> None:
        size = len(line) + 1
        if not line:
            return self._refuse("corrupt", "malformed", size)
        try:
            record = self._format.decode(line)
        except Refused as error:
            return self._refuse("corrupt", error.reason, size)
        if record.boot != self._segments.boot:
            return self._refuse("corrupt", "boot", size)
        if wrong := self._format.flaw(record):
            return self._refuse("corrupt", wrong, size)
        if self._writer is not None and (refusal := self._writer.refusal(record)):
            return self._refuse("refused", refusal, size)
        if self._seen[0] == record.boot and record.seq <= self._seen[1]:
            return self._refuse("corrupt", TWICE, size)
        self._seen = record.boot, record.seq
        self.latest_ns = max(self.latest_ns, record.t_ns)
        self.items.append((record.t_ns, record, size, RECORD))


class SegmentsTail:
    """Reads a node's segments one after the other, as one file.

    ``places``: directories in which they can be, the best first: where they are collected, and the mirror.
    """

    def __init__(self, places: Sequence[Path], root: Path, allowance: Allowance) -> None:
        self._places = places
        self._root = root
        self._allowance = allowance
        self._names: list[SegmentName] = []
        self._name: SegmentName | None = None
        self._tail = Tail([], allowance=allowance)
        """Of all segments together, it counts what was read and what was skipped."""

    @property
    def boot(self) -> int:
        return self._name.boot if self._name is not None else 0

    @property
    def too_long(self) -> int:
        return self._tail.too_long

    @property
    def skipped(self) -> int:
        return self._tail.skipped

    @property
    def cost(self) -> int:
        return self._tail.cost

    def look(self) -> None:
        listed = (names_inside(self._root, place) for place in self._places)
        found = {name for names in listed for name in segments_among(names)}
        self._names = sorted(name for name in found if self._name is None or name > self._name)
        if self._name is not None:
            self._tail.look()
        elif self._names:
            self._next()

    def read(self, most: int = PIECE) -> tuple[list[bytes], bool]:
        if self.skipped > MOST_SKIPPED:
            return [], True
        lines, at_end = self._tail.read(most)
        if at_end and not lines and self._names:
            # The next segment was begun: nothing is added to this one any more.
            self._next()
            return [], False
        return lines, at_end and not self._names

    def close(self) -> None:
        self._tail.close()

    def _next(self) -> None:
        before = self._tail
        before.close()
        self._name = self._names.pop(0)
        places = [place / str(self._name) for place in self._places]
        self._tail = Tail(places, root=self._root, allowance=self._allowance)
        self._tail.too_long, self._tail.skipped = before.too_long, before.skipped
        self._tail.cost = before.cost + SEGMENT_COST
        self._tail.look()
