"""The accounts of a flow: what its source has sent, what its sink has received. Pure: time is handed in."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from node_agent.apps.flows.delays import bucket_of
from node_agent.apps.flows.events import MOST_LISTED, SECOND_NS, FlowReceived, FlowSent, Heard, Rows

REPEATS = 3
"""Records that list a second after its last change: two lost ones in a row are made up for."""
HELD_SECONDS = 120
"""A packet that is sent longer than that before the newest one counts as late."""
MOST_HELD = 16_384
"""Seconds that are held, most of them to be listed: more than a source of TCP has chunks waiting. Packets of
others count as late until there is room."""
FARTHEST_NS = 1 << 40
"""A delay that differs more than that (18 minutes) from the least one is the work of a clock; it is cut."""
WINDOW = 1 << 16
"""Packet numbers below the newest one that are remembered, to know duplicates."""

S = TypeVar("S")


class Changed(Generic[S]):
    """Values by second, and which of them the next records list."""

    def __init__(self) -> None:
        self._values: dict[int, S] = {}
        self._listings: dict[int, int] = {}
        self._in_order: list[int] = []
        """A heap of the seconds that are held."""
        self._newest = -1

    def get(self, second: int) -> S | None:
        return self._values.get(second)

    def forgotten(self, second: int) -> bool:
        return second <= self._newest - HELD_SECONDS

    def has_room(self, second: int) -> bool:
        return len(self._values) < MOST_HELD or second in self._values

    def put(self, second: int, value: S) -> None:
        if second not in self._values:
            heappush(self._in_order, second)
        self._values[second] = value
        self._listings[second] = REPEATS
        if second > self._newest:
            self._newest = second
            while self.forgotten(self._in_order[0]):
                old = heappop(self._in_order)
                if old not in self._listings:  # otherwise it goes when it has been listed
                    self._values.pop(old, None)

    def listed(self) -> Iterator[tuple[int, S]]:
        """What the next record lists; calling it counts as one listing of each."""
        for second in sorted(self._listings)[:MOST_LISTED]:
            yield second, self._values[second]
            self._listings[second] -= 1
            if not self._listings[second]:
                del self._listings[second]
                if self.forgotten(second):
                    self._values.pop(second, None)

    def __bool__(self) -> bool:
        return bool(self._listings)


class Amounts:
    """Packets and bytes by second, counted from ``opened_ns``."""

    def __init__(self, opened_ns: int) -> None:
        self.opened_ns = opened_ns
        self.packets = self.bytes = 0
        self.changed: Changed[tuple[int, int]] = Changed()

    def add(self, at_ns: int, size: int) -> int:
        """Count a packet; returns its second."""
        second = max(at_ns - self.opened_ns, 0) // SECOND_NS
        packets, size_so_far = self.changed.get(second) or (0, 0)
        self.changed.put(second, (packets + 1, size_so_far + size))
        self.packets += 1
        self.bytes += size
        return second

    def listed(self) -> Rows:
        return tuple((second, *amount) for second, amount in self.changed.listed())


class Numbered(NamedTuple):
    """The number of a packet, and the second of its source that it was sent in."""

    number: int
    second: int


class SentAccount:
    """Of a source, since its agent started."""

    def __init__(self, flow: str, opened_ns: int) -> None:
        self.flow = flow
        self.skipped = self.acknowledged = self.connections = self.failures = 0
        self._sent = Amounts(opened_ns)
        self._last: tuple[int, ...] = ()

    @property
    def packets(self) -> int:
        return self._sent.packets

    def send(self, at_ns: int, size: int) -> Numbered:
        number = self._sent.packets
        return Numbered(number, self._sent.add(at_ns, size))

    def sample(self, now_ns: int) -> FlowSent | None:
        """None if there is nothing new to report."""
        counters = self.skipped, self.acknowledged, self.connections, self.failures
        if counters == self._last and not self._sent.changed:
            return None
        self._last = counters
        sent = self._sent
        totals = sent.packets, sent.bytes
        return FlowSent(self.flow, sent.opened_ns, now_ns, *totals, *counters, sent.listed())


class _Second:
    """What has arrived of the packets of one second of the source; delays as differences to ``base``."""

    __slots__ = ("base", "buckets", "bytes", "jitter", "least", "most", "packets", "sum")

    def __init__(self, base: int) -> None:
        self.base = base
        self.packets = self.bytes = self.jitter = self.sum = 0
        self.least, self.most = FARTHEST_NS, -FARTHEST_NS
        self.buckets: dict[int, int] = {}

    def add(self, size: int, delay: int, jitter: int) -> None:
        difference = min(max(delay - self.base, -FARTHEST_NS), FARTHEST_NS)
        self.packets += 1
        self.bytes += size
        self.jitter = jitter
        self.sum += difference
        self.least, self.most = min(self.least, difference), max(self.most, difference)
        bucket = bucket_of(difference)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def heard(self, second: int) -> Heard:
        return Heard(
            second,
            self.packets,
            self.bytes,
            self.jitter,
            self.base,
            self.sum,
            self.least,
            self.most,
            tuple(sorted(self.buckets.items())),
        )


class ReceivedAccount:
    """Of a sink, for one start of the source: delivery by the source's seconds, arrivals by its own."""

    def __init__(self, flow: str, source_boot: int, opened_ns: int) -> None:
        self.flow = flow
        self.source_boot = source_boot
        self.duplicates = self.reordered = self.late = 0
        self._arrived = Amounts(opened_ns)
        self._heard: Changed[_Second] = Changed()
        self._seen = _Seen()
        self._transit: int | None = None
        self._least_delay: int | None = None
        self._jitter = 0.0
        self._last: tuple[int, ...] = ()

    @property
    def packets(self) -> int:
        return self._arrived.packets

    def take(self, number: int, second: int, size: int, sent_ns: int, now_ns: int) -> bool:
        """Count a packet; False if it is a duplicate or too late to tell."""
        heard = self._heard
        if self._seen.forgotten(number) or heard.forgotten(second) or not heard.has_room(second):
            self.late += 1
            return False
        if not self._seen.add(number):
            self.duplicates += 1
            return False
        if number < self._seen.newest:
            self.reordered += 1
        delay = now_ns - sent_ns
        self._account_jitter(delay)
        if self._least_delay is None or delay < self._least_delay:
            self._least_delay = delay
        of_second = heard.get(second) or _Second(self._least_delay)
        of_second.add(size, delay, round(self._jitter))
        heard.put(second, of_second)
        self._arrived.add(now_ns, size)
        return True

    def sample(self, now_ns: int) -> FlowReceived | None:
        """None if there is nothing new to report."""
        counters = self.duplicates, self.reordered, self.late
        if counters == self._last and not self._heard and not self._arrived.changed:
            return None
        self._last = counters
        arrived = self._arrived
        return FlowReceived(
            self.flow,
            self.source_boot,
            arrived.opened_ns,
            now_ns,
            arrived.packets,
            arrived.bytes,
            *counters,
            tuple(heard.heard(second).row() for second, heard in self._heard.listed()),
            arrived.listed(),
        )

    def _account_jitter(self, transit: int) -> None:
        """RFC 3550, section 6.4.1."""
        if self._transit is not None:
            self._jitter += (min(abs(transit - self._transit), FARTHEST_NS) - self._jitter) / 16
        self._transit = transit


class _Seen:
    """The packet numbers that have arrived, of the newest ``WINDOW``."""

    def __init__(self) -> None:
        self.newest = -1
        self._marks = bytearray(WINDOW)

    def forgotten(self, number: int) -> bool:
        return number <= self.newest - WINDOW

    def add(self, number: int) -> bool:
        """False if it has arrived before."""
        if number > self.newest:
            self._clear(self.newest + 1, number)
            self.newest = number
        elif self._marks[number % WINDOW]:
            return False
        self._marks[number % WINDOW] = 1
        return True

    def _clear(self, first: int, end: int) -> None:
        """Forget the marks of numbers from ``first`` up to, and without, ``end``."""
        if end - first >= WINDOW:
            self._marks = bytearray(WINDOW)
            return
        begin, count = first % WINDOW, end - first
        tail = min(count, WINDOW - begin)
        self._marks[begin : begin + tail] = bytes(tail)
        self._marks[: count - tail] = bytes(count - tail)
