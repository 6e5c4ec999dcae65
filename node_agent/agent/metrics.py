"""The metrics of the agent itself: from its own records, and what it reads when it is asked.

An agent writes records of its own kinds also in the name of applications, such as what they send to compare
costs. There is one ``AgentTally`` for each name, the agent's own included, so that two applications do not
share a counter.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

LINK_COST = "rove_link_cost"
CPU = "rove_process_cpu_seconds_total"
RESIDENT = "rove_process_resident_memory_bytes"
OPEN_FDS = "rove_process_open_fds"
STARTED = "rove_process_start_time_seconds"
BOOT = "rove_agent_boot"
RECORDS = "rove_telemetry_records_total"
BUFFERED = "rove_telemetry_buffered_bytes"
INFO = "rove_agent_info"
REFUSED = "rove_refused_total"
EXTENSION_FAILURES = "rove_extension_failures_total"
MESSAGES_SENT = "rove_routing_messages_sent_total"
BYTES_SENT = "rove_routing_sent_bytes_total"
MESSAGES_FORWARDED = "rove_routing_messages_forwarded_total"
BYTES_FORWARDED = "rove_routing_forwarded_bytes_total"

MOST_KEYS = 4096
"""Counters that one tally remembers; of most there are a few."""
_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE
_MESSAGE = ("protocol", "message")

READINGS: tuple[Metric, ...] = (
    Metric(LINK_COST, _GAUGE, "Cost of sending to a neighbour, as routing sees it.", ("neighbour", "metric")),
    Metric(CPU, _COUNTER, "Processor time of the agent.", unit="seconds"),
    Metric(RESIDENT, _GAUGE, "Memory of the agent that is resident.", unit="bytes"),
    Metric(OPEN_FDS, _GAUGE, "Open file descriptors of the agent."),
    Metric(STARTED, _GAUGE, "When the agent started, since 1970.", unit="seconds"),
    Metric(BOOT, _GAUGE, "How often the agent was started on this node, this time included."),
    Metric(RECORDS, _COUNTER, "Records of telemetry that the agent has taken."),
    Metric(BUFFERED, _GAUGE, "Telemetry that is not yet written to a file.", unit="bytes"),
)
"""Read when the agent is asked: a neighbour that is lost has no cost any more."""
AGENT_METRICS: tuple[Metric, ...] = (
    *READINGS,
    Metric(INFO, _GAUGE, "The agent's version and clock; the value is always 1.", ("version", "clock")),
    Metric(REFUSED, _COUNTER, "What the node refused, from all sources.", ("what", "reason")),
    Metric(EXTENSION_FAILURES, _COUNTER, "Errors in code of extensions.", ("what", "name")),
    Metric(MESSAGES_SENT, _COUNTER, "Messages of the routing protocol that the node sent.", _MESSAGE),
    Metric(BYTES_SENT, _COUNTER, "Bytes of the routing messages that the node sent.", _MESSAGE, "bytes"),
    Metric(MESSAGES_FORWARDED, _COUNTER, "Messages of other nodes that the node passed on.", _MESSAGE),
    Metric(
        BYTES_FORWARDED, _COUNTER, "Bytes of the routing messages that the node passed on.", _MESSAGE, "bytes"
    ),
)


class AgentTally:
    """Sums up the agent's own records: they hold counters since its start, so the last of a kind counts."""

    def __init__(self) -> None:
        self._info: tuple[str, str] | None = None
        self._refused: dict[tuple[str, str, str], int] = {}
        self._failed: dict[tuple[str, str], int] = {}
        self._sent: dict[tuple[str, str], tuple[int, int, int, int]] = {}

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        match kind:
            case "agent_start":
                self._info = record.version, record.clock
            case "refused":
                _keep(self._refused, (record.what, record.source, record.reason), record.count)
            case "extension_failed":
                _keep(self._failed, (record.what, record.name), record.count)
            case "routing_overhead":
                counted = record.sent, record.sent_bytes, record.forwarded, record.forwarded_bytes
                _keep(self._sent, (record.protocol, record.message), counted)

    def samples(self) -> Iterator[Sample]:
        if self._info is not None:
            yield Sample(INFO, self._info, 1.0)
        refused: dict[tuple[str, str], int] = {}
        for (what, _, reason), count in self._refused.items():
            refused[what, reason] = refused.get((what, reason), 0) + count
        for labels, count in refused.items():
            yield Sample(REFUSED, labels, count)
        for labels, count in self._failed.items():
            yield Sample(EXTENSION_FAILURES, labels, count)
        names = (MESSAGES_SENT, BYTES_SENT, MESSAGES_FORWARDED, BYTES_FORWARDED)
        for labels, counted in self._sent.items():
            for name, value in zip(names, counted, strict=True):
                yield Sample(name, labels, value)


def _keep(known: dict[Any, Any], key: Hashable, value: Any) -> None:
    if key in known or len(known) < MOST_KEYS:
        known[key] = value


AGENT_METRIC_KINDS = MetricKinds(AGENT_METRICS, AgentTally)
