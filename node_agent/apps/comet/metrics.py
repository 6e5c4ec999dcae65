"""What the detection of events reports while it runs: events, detections and their delays, links, stores."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from node_agent.apps.comet.telemetry import (
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventOccurred,
    EventStore,
)
from node_agent.telemetry.histogram import DurationHistogram
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

_COUNTER, _GAUGE, _HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
DELAY_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0)
"""Seconds: detections wait for contacts."""

OCCURRED = "rove_events_occurred_total"
DETECTIONS = "rove_detections_total"
DELAY = "rove_detection_delay_seconds"
CONNECTED = "rove_event_link_connected"
DROPPED = "rove_event_dropped_total"
INSTANCES = "rove_event_link_instances_total"
REQUESTS = "rove_event_link_requests_total"
REFERENCES = "rove_event_link_references_total"
MARKS = "rove_event_link_marks_total"
BYTES = "rove_event_link_bytes_total"
CONTACTS = "rove_event_link_contacts_total"
WAITING = "rove_event_link_waiting_messages"
WAITING_BYTES = "rove_event_link_waiting_bytes"
STORED = "rove_event_store_instances"
MATCHES = "rove_event_store_matches"
UNDECIDED = "rove_event_store_undecided"
_LINK = {
    INSTANCES: ("instances", _COUNTER, "Instances of events sent to a neighbour."),
    REFERENCES: (
        "references",
        _COUNTER,
        "References to instances that went to the neighbour before, for further patterns.",
    ),
    REQUESTS: ("requests", _COUNTER, "Requests for instances sent to a neighbour."),
    MARKS: (
        "marks",
        _COUNTER,
        "Marks sent to a neighbour that say how complete streams are.",
    ),
    BYTES: ("bytes", _COUNTER, "Bytes sent to a neighbour to detect events."),
    CONTACTS: ("connections", _COUNTER, "Connections made to a neighbour."),
    WAITING: ("waiting", _GAUGE, "Messages that wait for a neighbour."),
    WAITING_BYTES: ("waiting_bytes", _GAUGE, "Bytes that wait for a neighbour."),
}
_STORE = {
    STORED: ("instances", "Instances that a node keeps to match them."),
    MATCHES: ("matches", "Matches that a node keeps until they are asked for."),
    UNDECIDED: ("undecided", "Matches that wait until an absence is certain."),
}
METRICS = (
    Metric(OCCURRED, _COUNTER, "Instances of events that occurred.", ("event",)),
    Metric(DETECTIONS, _COUNTER, "Detections of a pattern at its sink.", ("pattern",)),
    Metric(
        DELAY,
        _HISTOGRAM,
        "Time from the last event of a detection to the detection, by the clocks of both nodes, uncorrected; "
        "less than 0 counts as 0.",
        ("pattern",),
        "seconds",
        DELAY_BUCKETS,
    ),
    *(
        Metric(name, kind, text, ("neighbour",), "bytes" if "_bytes" in name else "")
        for name, (_, kind, text) in _LINK.items()
    ),
    Metric(CONNECTED, _GAUGE, "1 while a node is connected to a neighbour, else 0.", ("neighbour",)),
    *(Metric(name, _GAUGE, text) for name, (_, text) in _STORE.items()),
    Metric(DROPPED, _COUNTER, "Instances and requests that a full store gave up."),
)


class DetectTally:
    def __init__(self) -> None:
        self._occurred: Counter[str] = Counter()
        self._detected: Counter[str] = Counter()
        self._delays: dict[str, DurationHistogram] = defaultdict(lambda: DurationHistogram(DELAY_BUCKETS))
        self._links: dict[str, Any] = {}
        self._connected: dict[str, bool] = {}
        self._store: Any = None
        self._dropped = 0

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        if kind == _OCCURRED:
            self._occurred[record.event] += 1
        elif kind == _DETECTED:
            self._detected[record.pattern] += 1
            self._delays[record.pattern].add(t_ns - record.end_ns, (record.pattern, record.number), t_ns)
        elif kind == _LINK_KIND:
            self._links[record.neighbour] = record
        elif kind == _CONTACT:
            self._connected[record.neighbour] = record.up
        elif kind == _STORE_KIND:
            self._store = record
        elif kind == _DROPPED:
            self._dropped += 1

    def samples(self) -> Iterator[Sample]:
        for event, count in self._occurred.items():
            yield Sample(OCCURRED, (event,), count)
        for pattern, count in self._detected.items():
            yield Sample(DETECTIONS, (pattern,), count)
        for pattern, delays in self._delays.items():
            yield delays.sample(DELAY, (pattern,))
        for neighbour, record in self._links.items():
            for name, (field, _, _) in _LINK.items():
                yield Sample(name, (neighbour,), getattr(record, field))
            yield Sample(CONNECTED, (neighbour,), int(self._connected.get(neighbour, False)))
        if self._store is not None:
            for name, (field, _) in _STORE.items():
                yield Sample(name, (), getattr(self._store, field))
            yield Sample(DROPPED, (), self._dropped)


_OCCURRED, _DETECTED, _DROPPED = tag_of(EventOccurred), tag_of(EventDetected), tag_of(EventDropped)
_LINK_KIND, _CONTACT, _STORE_KIND = tag_of(EventLink), tag_of(EventContact), tag_of(EventStore)
METRIC_KINDS = MetricKinds(METRICS, DetectTally, (_STORE_KIND,))
