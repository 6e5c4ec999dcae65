"""What a dataflow records about its tuples, routes, queues and connections."""

from collections.abc import Iterable, Iterator
from typing import Any

from node_agent.apps.dataflow.model.decision import Candidate
from node_agent.model.telemetry import Event

MOST_TUPLES = 4096
"""The most that one record covers; more neighbours take several records."""


class TupleEvent(Event, frozen=True, omit_defaults=True):
    """What happened to a tuple, or at about the same time to several neighbours of which ``tau`` is the
    first.

    ``size``: of all together; ``sizes``: of each, unless they are equal.
    """


class TupleEmitted(TupleEvent, tag="tuple_emitted", frozen=True):
    replica: str
    origin: str
    tau: int
    size: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()


class TupleSent(TupleEvent, tag="tuple_sent", frozen=True):
    replica: str
    to: str
    origin: str
    tau: int
    size: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()


class TupleReceived(TupleEvent, tag="tuple_received", frozen=True):
    replica: str
    sender: str
    origin: str
    tau: int
    size: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()


class TupleProcessed(TupleEvent, tag="tuple_processed", frozen=True):
    """``took_ns``: for all of them together."""

    replica: str
    origin: str
    tau: int
    size: int
    took_ns: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()


class TupleDelivered(TupleEvent, tag="tuple_delivered", frozen=True):
    """``births``: if there are several, how many nanoseconds after ``born_ns`` each one was captured."""

    replica: str
    origin: str
    tau: int
    size: int
    born_ns: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()
    births: tuple[int, ...] = ()


class TupleDropped(Event, tag="tuple_dropped", frozen=True):
    """``downstream``: the operator that will not get it; None: no operator will."""

    replica: str
    origin: str
    tau: int
    size: int
    reason: str
    downstream: str | None = None


class RouteSwitch(Event, tag="route_switch", frozen=True):
    """``old``/``new`` are replica ids of operator ``downstream``; None means no usable route."""

    replica: str
    downstream: str
    old: str | None
    new: str | None
    old_cost: float | None
    new_cost: float | None
    source: str


class RouteDecision(Event, tag="route_decision", frozen=True):
    """A decision, to switch or not, with all that it depended on: enough to explain and to replay it.

    ``old``: the replica in use before; ``new``: from now on. ``shares`` divides the stream if it goes to
    several. ``needed``: the gain in cost that a switch had to exceed. The costs were taken at ``taken_ns``.
    """

    replica: str
    downstream: str
    policy: str
    old: str | None
    new: str | None
    candidates: tuple[Candidate, ...]
    shares: dict[str, float]
    needed: float | None
    threshold: float
    relative: bool
    exponent: float
    draw_seed: int
    queued: int
    shared: bool
    whole: bool
    metric: str
    source: str
    taken_ns: int


class LinkCost(Event, tag="link_cost", frozen=True):
    """Cost of the network path to a downstream replica; None if there is no path."""

    replica: str
    to: str
    cost: float | None
    metric: str
    source: str


class QueueSample(Event, tag="queue", frozen=True):
    replica: str
    queue: str
    length: int


class LinkLost(Event, tag="link_lost", frozen=True):
    """An established connection is lost: ``silent``, ``closed`` by the other end, ``broken``, or closed here
    because of what arrived over it (``frame``, ``forged``).
    """

    replica: str
    to: str
    reason: str


class SpillSample(Event, tag="spill", frozen=True):
    """``size`` of the node's spill file; how often it had no room since the start, and the last reason."""

    size: int
    refused: int
    reason: str | None


class OperatorFault(Event, tag="operator_fault", frozen=True):
    """An operator got something that it cannot use, for the ``count``-th time, and continues."""

    replica: str
    reason: str
    count: int


class MigrationStep(Event, tag="migration", frozen=True):
    """Something happened to a migration of an operator, which its number tells from others.

    The coordinator says ``ordered`` (``detail``: the method, ``size``: bytes of immutable state), ``gone`` (a
    host that does not answer) and ``finished`` (``detail``: ``moved``, or why the operator stays). Hosts say
    ``began``, ``state_kept``, ``handed_over``, ``took_over`` (``size``: bytes that came from the other host),
    ``took_back``, ``finished``, ``released``, ``superseded`` and ``unusable``.
    """

    replica: str
    migration: int
    step: str
    detail: str = ""
    source: str = ""
    target: str = ""
    size: int = 0


TUPLE_KINDS: tuple[type[Event], ...] = (
    TupleEmitted,
    TupleSent,
    TupleReceived,
    TupleProcessed,
    TupleDelivered,
    TupleDropped,
)
"""What can happen to a tuple on its way from a source to a sink."""

DATAFLOW_KINDS: tuple[type[Event], ...] = (
    *TUPLE_KINDS,
    RouteSwitch,
    RouteDecision,
    LinkCost,
    QueueSample,
    LinkLost,
    SpillSample,
    OperatorFault,
    MigrationStep,
)


def tuple_by_tuple(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields one record for each tuple of records that cover several, with its share of their totals."""
    for record in records:
        count = record.get("tuples", 1)
        if count == 1:
            yield record
            continue
        sizes, births = record.get("sizes"), record.get("births")
        alone = {name: value for name, value in record.items() if name not in ("tuples", "sizes", "births")}
        if "took_ns" in record:
            alone["took_ns"] = record["took_ns"] // count
        for place in range(count):
            single = {**alone, "tau": record["tau"] + place, "size": record["size"] // count}
            if sizes:
                single["size"] = sizes[place]
            if births:
                single["born_ns"] = record["born_ns"] + births[place]
            yield single
