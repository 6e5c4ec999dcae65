"""What moving interests report while they run: readings, switches, situations and their delays, brokers."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from node_agent.apps.mcep.reusing.telemetry import SelectionsDecided
from node_agent.apps.mcep.telemetry import (
    InterestBroker,
    InterestClient,
    InterestLink,
    InterestStalled,
    InterestSwitched,
    SensorRead,
    SituationFound,
)
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE
DECIDED = "rove_interest_shared_selections_total"
CORRELATED = "rove_interest_shared_processed_total"
COMPARED = "rove_interest_shared_comparisons_total"
READ = "rove_sensor_events_total"
SWITCHES = "rove_interest_switches_total"
FOUND = "rove_situations_total"
STALLED = "rove_interest_stalled"
STORED = "rove_interest_stored_events"
BEFORE_OPERATORS = "rove_interest_waiting_messages"
STREAMED = "rove_interest_streamed_events_total"
SKIPPED = "rove_interest_skipped_events_total"
SELECTIONS = "rove_interest_selections_total"
HANDOVERS = "rove_interest_handovers_total"
MESSAGES = "rove_interest_link_messages_total"
BYTES = "rove_interest_link_bytes_total"
WAITING = "rove_interest_link_waiting_messages"
_BROKER = {
    STORED: ("stored", _GAUGE, "Events that a broker keeps."),
    BEFORE_OPERATORS: ("waiting", _GAUGE, "Messages that wait before operators."),
    STREAMED: ("streamed", _COUNTER, "Events that a broker sent to operators."),
    SKIPPED: ("skipped", _COUNTER, "Events that suppression left out."),
    SELECTIONS: ("processed", _COUNTER, "Selections that operators correlated."),
}
_MANAGER = {
    DECIDED: ("selections", _COUNTER, "Selections that a manager decided about."),
    CORRELATED: ("processed", _COUNTER, "Selections that were processed, for all that are similar."),
    COMPARED: ("comparisons", _COUNTER, "Comparisons of selections."),
}
_CLIENT = {HANDOVERS: ("handovers", _COUNTER, "How often a client came to another broker.")}
_LINK = {
    MESSAGES: ("messages", _COUNTER, "Messages sent to a node."),
    BYTES: ("bytes", _COUNTER, "Bytes of messages sent to a node."),
    WAITING: ("waiting", _GAUGE, "Messages that wait for a node."),
}
METRICS = (
    Metric(READ, _COUNTER, "Events that sensors of a client saw.", ("type",)),
    Metric(SWITCHES, _COUNTER, "Switches of a query's interest.", ("query",)),
    Metric(FOUND, _COUNTER, "Situations that a query's focal object got.", ("query",)),
    Metric(STALLED, _GAUGE, "1 while nothing goes on at a node, else 0."),
    *(Metric(name, kind, text) for name, (_, kind, text) in {**_BROKER, **_CLIENT}.items()),
    *(Metric(name, kind, text, ("manager",)) for name, (_, kind, text) in _MANAGER.items()),
    *(
        Metric(name, kind, text, ("neighbour",), "bytes" if "_bytes" in name else "")
        for name, (_, kind, text) in _LINK.items()
    ),
)


class InterestTally:
    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {READ: Counter(), SWITCHES: Counter(), FOUND: Counter()}
        self._links: dict[str, Any] = {}
        self._managers: dict[str, Any] = {}
        self._broker: Any = None
        self._client: Any = None
        self._stalled = False

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        if kind == tag_of(SensorRead):
            self._counts[READ][record.type] += 1
        elif kind == tag_of(InterestSwitched):
            self._counts[SWITCHES][record.query] += 1
        elif kind == tag_of(SituationFound):
            self._counts[FOUND][record.query] += 1
        elif kind == tag_of(InterestLink):
            self._links[record.neighbour] = record
        elif kind == tag_of(SelectionsDecided):
            self._managers[record.manager] = record
        elif kind == tag_of(InterestBroker):
            self._broker = record
        elif kind == tag_of(InterestClient):
            self._client = record
        elif kind == tag_of(InterestStalled):
            self._stalled = bool(record.reason)

    def samples(self) -> Iterator[Sample]:
        for name, counts in self._counts.items():
            for label, count in counts.items():
                yield Sample(name, (label,), count)
        for table, record in ((_BROKER, self._broker), (_CLIENT, self._client)):
            if record is not None:
                for name, (field, _, _) in table.items():
                    yield Sample(name, (), getattr(record, field))
        for table, records in ((_LINK, self._links), (_MANAGER, self._managers)):
            for label, record in records.items():
                for name, (field, _, _) in table.items():
                    yield Sample(name, (label,), getattr(record, field))
        if self._broker is not None or self._client is not None or self._stalled:
            yield Sample(STALLED, (), int(self._stalled))


METRIC_KINDS = MetricKinds(METRICS, InterestTally, (tag_of(InterestBroker), tag_of(InterestClient)))
