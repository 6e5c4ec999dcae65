"""What flows report while they run: packets and bytes at both ends, and how late they arrive."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from node_agent.apps.flows.delays import middle_ns
from node_agent.apps.flows.events import FlowReceived, FlowSent, Heard
from node_agent.telemetry.histogram import DURATION_BUCKETS, DurationHistogram
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

_COUNTER, _GAUGE, _HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_FLOW = ("flow",)
KEPT_SECONDS = 1200
"""Seconds of a source for which delays are kept, because a later record may list them again with more
packets. Sinks forget them after a tenth of it."""

DELAY = "rove_flow_delay_seconds"
JITTER = "rove_flow_jitter_seconds"

_SENT = {
    "rove_flow_sent_packets_total": ("packets", "Packets, or chunks of TCP, that the source of a flow sent."),
    "rove_flow_sent_bytes_total": ("bytes", "Bytes that the source of a flow sent."),
    "rove_flow_skipped_packets_total": (
        "skipped",
        "Packets that came due while the node was too busy to send them within a second.",
    ),
    "rove_flow_acknowledged_bytes_total": (
        "acknowledged",
        "Bytes of a TCP flow that the application at its sink has acknowledged.",
    ),
    "rove_flow_connections_total": ("connections", "Connections that a TCP flow made."),
    "rove_flow_connection_failures_total": (
        "failures",
        "Connections that a TCP flow failed to make or to keep.",
    ),
}
_RECEIVED = {
    "rove_flow_received_packets_total": ("packets", "Packets that the sink of a flow received."),
    "rove_flow_received_bytes_total": ("bytes", "Bytes that the sink of a flow received."),
    "rove_flow_duplicate_packets_total": ("duplicates", "Packets that arrived more than once."),
    "rove_flow_reordered_packets_total": ("reordered", "Packets that arrived after a later one."),
    "rove_flow_late_packets_total": (
        "late",
        "Packets that came too late to tell whether they are duplicates; they do not count as received.",
    ),
}
METRICS = (
    *(
        Metric(name, _COUNTER, text, _FLOW, "bytes" if "_bytes_" in name else "")
        for name, (_, text) in {**_SENT, **_RECEIVED}.items()
    ),
    Metric(
        DELAY,
        _HISTOGRAM,
        "Time from sending a packet to its arrival, by the clocks of both nodes, uncorrected, to within "
        "1.6 %; less than 0 counts as 0.",
        _FLOW,
        "seconds",
        DURATION_BUCKETS,
    ),
    Metric(
        JITTER, _GAUGE, "Jitter of a flow at its sink after the last packet (RFC 3550).", _FLOW, "seconds"
    ),
)


class FlowsTally:
    def __init__(self) -> None:
        self._sent: dict[str, Any] = {}
        self._received: dict[tuple[str, int], Any] = {}
        """By flow and start of its source: each has counters of its own."""
        self._seconds: dict[tuple[str, int], dict[int, dict[int, int]]] = defaultdict(dict)
        """By the same and second of the source: how many delays of each bucket were counted."""
        self._delays: dict[str, DurationHistogram] = defaultdict(DurationHistogram)
        self._jitter: dict[str, tuple[int, int, int]] = {}
        """By flow: start of the source, second, and the jitter after it."""

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        if kind == _SENT_KIND:
            self._sent[record.flow] = record
        elif kind == _RECEIVED_KIND:
            self._received[record.flow, record.source_boot] = record
            for row in record.heard:
                self._hear(record.flow, record.source_boot, Heard.of(row))

    def samples(self) -> Iterator[Sample]:
        for flow, record in self._sent.items():
            for name, (field, _) in _SENT.items():
                yield Sample(name, (flow,), getattr(record, field))
        for name, (field, _) in _RECEIVED.items():
            sums: dict[str, int] = {}
            for (flow, _), record in self._received.items():
                sums[flow] = sums.get(flow, 0) + getattr(record, field)
            for flow, value in sums.items():
                yield Sample(name, (flow,), value)
        for flow, delays in self._delays.items():
            yield delays.sample(DELAY, (flow,))
        for flow, (_, _, jitter_ns) in self._jitter.items():
            yield Sample(JITTER, (flow,), jitter_ns / 1e9)

    def _hear(self, flow: str, source_boot: int, heard: Heard) -> None:
        """Adds what is new of a second: its counts only grow from one record to the next."""
        seconds = self._seconds[flow, source_boot]
        known = seconds.get(heard.second)
        if known is None:
            if seconds and heard.second <= max(seconds) - KEPT_SECONDS:
                return
            known = seconds[heard.second] = {}
            if len(seconds) > KEPT_SECONDS:
                del seconds[min(seconds)]
        delays = self._delays[flow]
        for bucket, count in heard.delays:
            if (new := count - known.get(bucket, 0)) > 0:
                known[bucket] = count
                delays.add_equal(heard.base_ns + middle_ns(bucket), new)
        if (source_boot, heard.second) >= self._jitter.get(flow, (0, 0))[:2]:
            self._jitter[flow] = (source_boot, heard.second, heard.jitter_ns)


_SENT_KIND, _RECEIVED_KIND = tag_of(FlowSent), tag_of(FlowReceived)
METRIC_KINDS = MetricKinds(METRICS, FlowsTally, (_SENT_KIND, _RECEIVED_KIND))
