"""What a dataflow reports while it runs: tuples, latencies, queues, routes and connections."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from node_agent.apps.dataflow.events import (
    LinkCost,
    LinkLost,
    MigrationStep,
    OperatorFault,
    QueueSample,
    RouteDecision,
    RouteSwitch,
    SpillSample,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.faces.metrics import FACE_METRICS, FaceTally
from node_agent.telemetry.histogram import DURATION_BUCKETS, DurationHistogram
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

_COUNTER, _GAUGE, _HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_REPLICA = ("replica",)
_TO = ("replica", "to")
_ROUTE = ("replica", "downstream")

EMITTED = "rove_tuples_emitted"
SENT = "rove_tuples_sent"
RECEIVED = "rove_tuples_received"
PROCESSED = "rove_tuples_processed"
DELIVERED = "rove_tuples_delivered"
DROPPED = "rove_tuples_dropped_total"
LATENCY = "rove_tuple_latency_seconds"
PROCESSING = "rove_processing_seconds_total"
QUEUE = "rove_queue_length"
SWITCHES = "rove_route_switches_total"
ROUTES_LOST = "rove_routes_lost_total"
SHARE = "rove_route_share_ratio"
ROUTE_COST = "rove_route_cost"
PATH_COST = "rove_path_cost"
CONNECTIONS_LOST = "rove_connections_lost_total"
SPILL = "rove_spill_bytes"
SPILL_REFUSED = "rove_spill_refused_total"
FAULTS = "rove_operator_faults_total"
MIGRATIONS = "rove_migration_steps_total"
MIGRATED = "rove_migrated_bytes_total"

OTHER = "other"
MIGRATION_STEPS = (
    "ordered",
    "began",
    "state_kept",
    "handed_over",
    "took_over",
    "took_back",
    "finished",
    "gone",
)
DROP_REASONS = (
    "absorbed",
    "dead_letter",
    "expired",
    "filtered",
    "incomplete_window",
    "link_failed",
    "retention_full",
    "source_buffer_full",
    "too_large",
)
CONNECTION_REASONS = ("broken", "closed", "forged", "frame", "silent")
FAULT_REASONS = ("bad_frame", "bad_image", "not_written")


def _amounts(name: str, what: str, labels: tuple[str, ...] = _REPLICA) -> tuple[Metric, Metric]:
    return (
        Metric(f"{name}_total", _COUNTER, f"Tuples that {what}.", labels),
        Metric(f"{name}_bytes_total", _COUNTER, f"Bytes of the tuples that {what}.", labels, "bytes"),
    )


METRICS = (
    *_amounts(EMITTED, "a source captured or an operator made anew"),
    *_amounts(SENT, "were sent to a downstream replica", _TO),
    *_amounts(RECEIVED, "a replica received"),
    *_amounts(PROCESSED, "an operator has processed"),
    *_amounts(DELIVERED, "a sink delivered"),
    Metric(
        DROPPED,
        _COUNTER,
        f"Tuples that end here, by reason: {', '.join(DROP_REASONS)} or {OTHER}. Absorbed ones became "
        "part of a new tuple, filtered ones were sorted out by an operator.",
        ("replica", "reason"),
    ),
    Metric(
        LATENCY,
        _HISTOGRAM,
        "Time from the capture of a tuple to its delivery, by the clocks of both nodes, uncorrected; less "
        "than 0 counts as 0. The exemplar is the slowest tuple of the ten seconds before the last delivery.",
        _REPLICA,
        "seconds",
        DURATION_BUCKETS,
    ),
    Metric(PROCESSING, _COUNTER, "Time that an operator spent on tuples.", _REPLICA, "seconds"),
    Metric(QUEUE, _GAUGE, "Tuples that wait in a queue of a replica.", ("replica", "queue")),
    Metric(
        SWITCHES,
        _COUNTER,
        "Times that a replica took another downstream replica than it had used before.",
        _ROUTE,
    ),
    Metric(ROUTES_LOST, _COUNTER, "Times that a replica was left without any route.", _ROUTE),
    Metric(
        SHARE,
        _GAUGE,
        "Share of a replica's output that goes to a downstream replica at present; vanishes with the route.",
        ("replica", "downstream", "to"),
        "ratio",
    ),
    Metric(
        ROUTE_COST,
        _GAUGE,
        "Cost of the whole path that a replica uses now, in units of routing; vanishes with the route.",
        ("replica", "downstream", "to"),
    ),
    Metric(
        PATH_COST,
        _GAUGE,
        "Cost of the network path to a downstream replica, in units of routing; vanishes with the path.",
        _TO,
    ),
    Metric(
        CONNECTIONS_LOST,
        _COUNTER,
        f"Established connections that were lost, by reason: {', '.join(CONNECTION_REASONS)} or {OTHER}.",
        ("replica", "to", "reason"),
    ),
    Metric(SPILL, _GAUGE, "Size of the file to which a node spills what it retains.", unit="bytes"),
    Metric(SPILL_REFUSED, _COUNTER, "Times that the spill file had no room."),
    Metric(
        FAULTS,
        _COUNTER,
        f"Inputs that an operator could not use, by reason: {', '.join(FAULT_REASONS)} or {OTHER}.",
        ("replica", "reason"),
    ),
    Metric(
        MIGRATIONS,
        _COUNTER,
        f"Steps of an operator's migrations on this node: {', '.join(MIGRATION_STEPS)} or {OTHER}.",
        ("replica", "step"),
    ),
    Metric(
        MIGRATED,
        _COUNTER,
        "Bytes of state, input and results that came to this node with an operator.",
        ("replica",),
        "bytes",
    ),
    *FACE_METRICS,
)


class _Amount:
    __slots__ = ("bytes", "tuples")

    def __init__(self) -> None:
        self.tuples = self.bytes = 0


class DataflowTally:
    """Counts what the replicas of one query on one node record. Works on every record: it must be quick."""

    def __init__(self) -> None:
        self._emitted: dict[str, _Amount] = defaultdict(_Amount)
        self._sent: dict[tuple[str, str], _Amount] = defaultdict(_Amount)
        self._received: dict[str, _Amount] = defaultdict(_Amount)
        self._processed: dict[str, _Amount] = defaultdict(_Amount)
        self._delivered: dict[str, _Amount] = defaultdict(_Amount)
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._latencies: dict[str, DurationHistogram] = defaultdict(DurationHistogram)
        self._processing_ns: Counter[str] = Counter()
        self._queues: dict[tuple[str, str], int] = {}
        self._switches: Counter[tuple[str, str]] = Counter()
        self._routes_lost: Counter[tuple[str, str]] = Counter()
        self._last_used: dict[tuple[str, str], str] = {}
        self._decisions: dict[tuple[str, str], Any] = {}
        self._path_costs: dict[tuple[str, str], float | None] = {}
        self._connections_lost: Counter[tuple[str, str, str]] = Counter()
        self._spill: Any = None
        self._faults: Counter[tuple[str, str]] = Counter()
        self._migrations: Counter[tuple[str, str]] = Counter()
        self._migrated: Counter[tuple[str]] = Counter()
        self._faces = FaceTally()
        self._takes: dict[str, Callable[[Any, int], None]] = {
            tag_of(TupleEmitted): self._emit,
            tag_of(TupleSent): self._send,
            tag_of(TupleReceived): self._receive,
            tag_of(TupleProcessed): self._process,
            tag_of(TupleDelivered): self._deliver,
            tag_of(TupleDropped): self._drop,
            tag_of(QueueSample): self._queue,
            tag_of(RouteSwitch): self._switch,
            tag_of(RouteDecision): self._decide,
            tag_of(LinkCost): self._path,
            tag_of(LinkLost): self._lose_connection,
            tag_of(SpillSample): self._spilled,
            tag_of(OperatorFault): self._fault,
            tag_of(MigrationStep): self._migrate,
            **self._faces.takes,
        }

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        take = self._takes.get(kind)
        if take is not None:
            take(record, t_ns)

    def samples(self) -> Iterator[Sample]:
        for name, amounts in (
            (EMITTED, self._emitted),
            (RECEIVED, self._received),
            (PROCESSED, self._processed),
            (DELIVERED, self._delivered),
        ):
            yield from _amount_samples(name, {(replica,): amount for replica, amount in amounts.items()})
        yield from _amount_samples(SENT, self._sent)
        yield from _counted(DROPPED, self._dropped)
        for replica, histogram in self._latencies.items():
            origin, tau = histogram.slowest
            yield histogram.sample(LATENCY, (replica,), {"origin": origin, "tau": str(tau)})
        for replica, took_ns in self._processing_ns.items():
            yield Sample(PROCESSING, (replica,), took_ns / 1e9)
        yield from _counted(QUEUE, self._queues)
        yield from _counted(SWITCHES, self._switches)
        yield from _counted(ROUTES_LOST, self._routes_lost)
        yield from self._route_samples()
        for labels, cost in self._path_costs.items():
            if cost is not None:
                yield Sample(PATH_COST, labels, cost)
        yield from _counted(CONNECTIONS_LOST, self._connections_lost)
        if self._spill is not None:
            yield Sample(SPILL, (), self._spill.size)
            yield Sample(SPILL_REFUSED, (), self._spill.refused)
        yield from _counted(FAULTS, self._faults)
        yield from _counted(MIGRATIONS, self._migrations)
        yield from _counted(MIGRATED, self._migrated)
        yield from self._faces.samples()

    def _route_samples(self) -> Iterator[Sample]:
        for labels, decision in self._decisions.items():
            if decision.new is None:
                continue
            for to, share in (decision.shares or {decision.new: 1.0}).items():
                yield Sample(SHARE, (*labels, to), share)
            cost = next((each.path for each in decision.candidates if each.to == decision.new), None)
            if cost is not None:
                yield Sample(ROUTE_COST, (*labels, decision.new), cost)

    def _emit(self, record: Any, t_ns: int) -> None:
        amount = self._emitted[record.replica]
        amount.tuples += record.tuples or 1
        amount.bytes += record.size

    def _send(self, record: Any, t_ns: int) -> None:
        amount = self._sent[record.replica, record.to]
        amount.tuples += record.tuples or 1
        amount.bytes += record.size

    def _receive(self, record: Any, t_ns: int) -> None:
        amount = self._received[record.replica]
        amount.tuples += record.tuples or 1
        amount.bytes += record.size

    def _process(self, record: Any, t_ns: int) -> None:
        amount = self._processed[record.replica]
        amount.tuples += record.tuples or 1
        amount.bytes += record.size
        self._processing_ns[record.replica] += record.took_ns

    def _deliver(self, record: Any, t_ns: int) -> None:
        amount = self._delivered[record.replica]
        amount.tuples += record.tuples or 1
        amount.bytes += record.size
        latencies, named = self._latencies[record.replica], (record.origin, record.tau)
        latency_ns = t_ns - record.born_ns
        if record.tuples is None or record.tuples == 1:
            latencies.add(latency_ns, named, t_ns)
        else:
            latencies.add_all(latency_ns, record.births or (0,) * record.tuples, named, t_ns)

    def _drop(self, record: Any, t_ns: int) -> None:
        self._dropped[record.replica, _among(DROP_REASONS, record.reason)] += 1

    def _queue(self, record: Any, t_ns: int) -> None:
        self._queues[record.replica, record.queue] = record.length

    def _switch(self, record: Any, t_ns: int) -> None:
        route, new = (record.replica, record.downstream), record.new
        if new is None:
            self._routes_lost[route] += 1
            return
        before = self._last_used.get(route)
        self._last_used[route] = new
        # A replica that never switched has a series too: Prometheus sees an increase only from a value.
        self._switches[route] += before is not None and before != new

    def _decide(self, record: Any, t_ns: int) -> None:
        self._decisions[record.replica, record.downstream] = record

    def _path(self, record: Any, t_ns: int) -> None:
        self._path_costs[record.replica, record.to] = record.cost

    def _lose_connection(self, record: Any, t_ns: int) -> None:
        self._connections_lost[record.replica, record.to, _among(CONNECTION_REASONS, record.reason)] += 1

    def _spilled(self, record: Any, t_ns: int) -> None:
        self._spill = record

    def _fault(self, record: Any, t_ns: int) -> None:
        self._faults[record.replica, _among(FAULT_REASONS, record.reason)] += 1

    def _migrate(self, record: Any, t_ns: int) -> None:
        self._migrations[record.replica, _among(MIGRATION_STEPS, record.step)] += 1
        if record.step == "took_over":
            self._migrated[(record.replica,)] += record.size


def _among(known: tuple[str, ...], reason: str) -> str:
    """Returns the word that a reason begins with, if it is a known one: labels must not be any text."""
    word = reason.partition(":")[0]
    return word if word in known else OTHER


def _amount_samples(name: str, amounts: dict[Any, _Amount]) -> Iterator[Sample]:
    for labels, amount in amounts.items():
        yield Sample(f"{name}_total", labels, amount.tuples)
        yield Sample(f"{name}_bytes_total", labels, amount.bytes)


def _counted(name: str, counts: dict[Any, int]) -> Iterator[Sample]:
    for labels, count in counts.items():
        yield Sample(name, labels, count)


METRIC_KINDS = MetricKinds(METRICS, DataflowTally, (tag_of(QueueSample),))
