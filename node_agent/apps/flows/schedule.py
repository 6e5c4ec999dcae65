"""When a flow sends how much: pure iterators over time since the run began to send.

A paced flow has a schedule of (time, size). A flow that goes as fast as it can has only the periods in which
it may send; TCP says how fast that is.
"""

import random
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


def schedule(flow: Flow, trace: Trace | None = None) -> Iterator[Send]:
    """What a paced flow sends. ``trace``: the flow's, if it has one."""
    sends = _traced(flow, trace) if trace is not None else _at_rate(flow)
    return _limited(sends, flow)


def chunk_sizes(flow: Flow) -> Iterator[int]:
    """What a flow writes that goes as fast as it can."""
    return (send.size for send in _limited((Send(0, flow.size) for _ in count()), flow))


def _at_rate(flow: Flow) -> Iterator[Send]:
    """The time between packets passes only while the flow is on: short periods do not raise the rate."""
    assert flow.rate is not None, "a paced flow without a trace has a rate"
    gap_ns = flow.size * 8 * NS / flow.rate
    sent, on_before_ns = 0, 0
    for period in periods(flow):
        length_ns = period.end_ns - period.begin_ns
        while (on_ns := round(sent * gap_ns) - on_before_ns) < length_ns:
            yield Send(period.begin_ns + on_ns, flow.size)
            sent += 1
        on_before_ns += length_ns


def _traced(flow: Flow, trace: Trace) -> Iterator[Send]:
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
