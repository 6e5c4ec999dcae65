"""When a flow sends how much: pure iterators over time since the run began to send.

A paced flow has a schedule of (time, size). A flow that goes as fast as it can has only the periods in which
it may send; TCP says how fast that is.
"""

import random
from abc import abstractmethod
from collections.abc import Iterator
from itertools import count
from math import inf
from typing import NamedTuple

from node_agent.apps.flows.model import MOST_PACKETS, SMALLEST, Flow, OnOff, Trace

NS = 1_000_000_000
ENDLESS_NS = 2**62
SHORTEST_PERIOD_NS = 1_000
"""Of an on or off period that is drawn: time goes on, whatever is drawn."""


class Send(NamedTuple):
    at_ns: int
    size: int


class Period(NamedTuple):
    """From ``begin_ns`` up to, and without, ``end_ns``."""

    begin_ns: int
    end_ns: int


class Schedule(Iterator[Send]):
    """What a paced flow sends, in order."""

    @abstractmethod
    def skip(self, before_ns: int) -> int:
        """Leave out what is due before that moment, however much it is; returns how many packets."""


def periods(flow: Flow) -> Iterator[Period]:
    """The periods in which the flow may send, in order."""
    begin, end = _ns(flow.start), ENDLESS_NS if flow.stop is None else _ns(flow.stop)
    if flow.on_off is None:
        if begin < end:
            yield Period(begin, end)
        return
    rng = random.Random(f"flow/{flow.seed}")
    while begin < end:
        until = begin + _drawn(rng, flow.on_off.on, flow.on_off)
        yield Period(begin, min(until, end))
        begin = until + _drawn(rng, flow.on_off.off, flow.on_off)


def schedule(flow: Flow, trace: Trace | None = None) -> Schedule:
    """What a paced flow sends. ``trace``: the flow's, if it has one."""
    return _AtRate(flow) if trace is None else _Traced(flow, trace)


def chunk_sizes(flow: Flow) -> Iterator[int]:
    """What a flow writes that goes as fast as it can."""
    return (send.size for send in _limited((Send(0, flow.size) for _ in count()), flow))


class _AtRate(Schedule):
    """The time between packets passes only while the flow is on: short periods do not raise the rate."""

    def __init__(self, flow: Flow) -> None:
        assert flow.rate is not None, "a paced flow without a trace has a rate"
        self._size = self._last_size = flow.size
        self._most = MOST_PACKETS if flow.packets is None else flow.packets
        if flow.bytes is not None:
            whole, rest = divmod(flow.bytes, flow.size)
            if whole + bool(rest) <= self._most:
                self._most = whole + bool(rest)
                self._last_size = max(rest, SMALLEST) if rest else flow.size
        self._gap_ns = flow.size * 8 * NS / flow.rate
        self._sent = self._on_before_ns = 0
        self._periods = periods(flow)
        self._period = next(self._periods, None)

    def __next__(self) -> Send:
        while self._period is not None and self._sent < self._most:
            at_ns = self._at_ns(self._sent, self._period)
            if at_ns < self._period.end_ns:
                self._sent += 1
                return Send(at_ns, self._last_size if self._sent == self._most else self._size)
            self._end(self._period)
        raise StopIteration

    def skip(self, before_ns: int) -> int:
        first = self._sent
        while (period := self._period) is not None and self._sent < self._most:
            self._sent = min(self._first_from(min(before_ns, period.end_ns), period), self._most)
            if before_ns < period.end_ns:
                break
            self._end(period)
        return self._sent - first

    def _at_ns(self, number: int, period: Period) -> int:
        return period.begin_ns + round(number * self._gap_ns) - self._on_before_ns

    def _first_from(self, at_ns: int, period: Period) -> int:
        """The number of the first packet that is due at ``at_ns`` or later; fractions may be off by a few."""
        guess = int((at_ns - period.begin_ns + self._on_before_ns) / self._gap_ns)
        number = max(guess, self._sent)
        while number > self._sent and self._at_ns(number - 1, period) >= at_ns:
            number -= 1
        while self._at_ns(number, period) < at_ns:
            number += 1
        return number

    def _end(self, period: Period) -> None:
        self._on_before_ns += period.end_ns - period.begin_ns
        self._period = next(self._periods, None)


class _Traced(Schedule):
    def __init__(self, flow: Flow, trace: Trace) -> None:
        self._sends = _limited(_trace_sends(flow, trace), flow)
        self._next = next(self._sends, None)

    def __next__(self) -> Send:
        send = self._next
        if send is None:
            raise StopIteration
        self._next = next(self._sends, None)
        return send

    def skip(self, before_ns: int) -> int:
        """One by one: a trace is short."""
        skipped = 0
        while self._next is not None and self._next.at_ns < before_ns:
            self._next = next(self._sends, None)
            skipped += 1
        return skipped


def _trace_sends(flow: Flow, trace: Trace) -> Iterator[Send]:
    start, stop = _ns(flow.start), inf if flow.stop is None else _ns(flow.stop)
    for at_ns, size in zip(trace.at_ns, trace.sizes, strict=True):
        if start + at_ns >= stop:
            return
        yield Send(start + at_ns, size)


def _limited(sends: Iterator[Send], flow: Flow) -> Iterator[Send]:
    """Up to the flow's limits. The last packet is the shorter one, but no shorter than its header."""
    left = inf if flow.bytes is None else flow.bytes
    most = MOST_PACKETS if flow.packets is None else flow.packets
    for number, send in enumerate(sends):
        if left <= 0 or number >= most:
            return
        size = send.size if send.size <= left else max(int(left), SMALLEST)
        yield Send(send.at_ns, size)
        left -= size


def _drawn(rng: random.Random, mean_s: float, on_off: OnOff) -> int:
    seconds = rng.expovariate(1 / mean_s) if on_off.distribution == "exponential" else mean_s
    return max(_ns(seconds), SHORTEST_PERIOD_NS)


def _ns(seconds: float) -> int:
    return round(seconds * NS)
