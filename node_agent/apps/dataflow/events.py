"""What a dataflow reports about its tuples, routes, queues and links."""

from collections.abc import Iterable, Iterator
from typing import Any

from node_agent.apps.dataflow.model.decision import Candidate
from node_agent.model.telemetry import Event

MOST_TUPLES = 4096
"""That one record tells of; more neighbours take several records."""


class TupleEvent(Event, frozen=True, omit_defaults=True):
    """What happened to a tuple, or within a moment to several neighbours of which ``tau`` is the first.

    ``size`` is that of all together; ``sizes`` has each one's, unless they are all alike.
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
    """``took_ns``: all of them together."""

    replica: str
    origin: str
    tau: int
    size: int
    took_ns: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()


class TupleDelivered(TupleEvent, tag="tuple_delivered", frozen=True):
    """``births``: where there are several, how many nanoseconds after ``born_ns`` each one was captured."""

    replica: str
    origin: str
    tau: int
    size: int
    born_ns: int
    tuples: int = 1
    sizes: tuple[int, ...] = ()
    births: tuple[int, ...] = ()


class TupleDropped(Event, tag="tuple_dropped", frozen=True):
    """``downstream``: the operator that will not get it; None: none will."""

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
    """A decision with all that it was made on, kept or switched: enough to explain it and to replay it.

    ``old`` was in use, ``new`` is from now on, ``shares`` divides the stream if it goes to several.
    ``needed``: the gain in cost that a switch had to exceed. The costs were taken at ``taken_ns``.
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
    """Cost of the application link to a downstream replica; None when there is no path."""

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
    """A connection that stood is gone: ``silent``, ``closed`` by the other end, ``broken``, or closed here
    for what came over it (``frame``, ``forged``).
    """

    replica: str
    to: str
    reason: str


class SpillSample(Event, tag="spill", frozen=True):
    """``size`` of the node's spill file; how often it had no room since the start, and why not lately."""

    size: int
    refused: int
    reason: str | None


class OperatorFault(Event, tag="operator_fault", frozen=True):
    """An operator met with something that it cannot use, for the ``count``-th time, and goes on."""

    replica: str
    reason: str
    count: int


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
)


def tuple_by_tuple(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Records of several tuples as one for each, with its share of what is told of all together."""
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
