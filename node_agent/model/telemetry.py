"""What an agent reports. Each event becomes one JSON line: the envelope, then the event's own fields.

The kinds and their fields are a contract with the analysis: ``orchestrator.analytics.schemas`` has the
same columns, and a test holds the two together.
"""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Candidate

MOST_TUPLES = 4096
"""That one record tells of; more neighbours take several records."""


class Envelope(Struct, frozen=True, kw_only=True):
    """The fields every record starts with; ``(node, boot, seq)`` is unique and gap-free per boot.

    ``app``: the application that reports, empty if it is the agent itself. Old records have none.
    """

    run: str
    node: str
    boot: int
    app: str = ""
    seq: int
    t_ns: int
    kind: str


class Event(Struct, frozen=True, tag_field="kind"):
    """Base of all kinds."""


class AgentStart(Event, tag="agent_start", frozen=True):
    version: str
    clock: str
    replicas: tuple[str, ...]


KILLED = "killed by a fault"
"""The reason of the simulator's agents that stop where others would be killed. They hold nothing."""


class AgentStop(Event, tag="agent_stop", frozen=True):
    """The last record of a boot that ended in order: its presence proves that no tail was lost."""

    reason: str


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


class RefusalCount(Event, tag="refused", frozen=True):
    """What this node has refused since its agent started: ``count`` times ``what`` from ``source``.

    ``what``: a connection, a datagram of the exchange, a routing message, a probe. See ``model.refusals``.
    """

    what: str
    source: str
    reason: str
    count: int


class SpillSample(Event, tag="spill", frozen=True):
    """``size`` of the node's spill file; how often it had no room since the start, and why not lately."""

    size: int
    refused: int
    reason: str | None


class RoutingOverhead(Event, tag="routing_overhead", frozen=True):
    """What the node's routing daemon has put on the air since it started, for one kind of message."""

    protocol: str
    message: str
    sent: int
    sent_bytes: int
    forwarded: int
    forwarded_bytes: int


class FaceRecord(Struct, frozen=True):
    """A face in a frame. ``person``: None if nobody asked, empty if nobody known. In pixels of the frame."""

    person: str | None
    x: float
    y: float
    width: float
    height: float
    score: float | None = None
    distance: float | None = None


class FacesTrue(Event, tag="faces_true", frozen=True):
    """Which faces a made-up picture shows. ``frame``: the picture's number, which it keeps on its way."""

    replica: str
    origin: str
    frame: int
    faces: tuple[FaceRecord, ...]


class FacesSeen(Event, tag="faces_seen", frozen=True):
    """What a sink was told of a picture. ``gallery``: the version that the persons were taken from."""

    replica: str
    origin: str
    tau: int
    frame: int
    gallery: str
    latency_ns: int
    faces: tuple[FaceRecord, ...]


class VideoSource(Event, tag="video_source", frozen=True):
    """What a source shows, and from now on at which size and JPEG quality."""

    replica: str
    content: str
    width: int
    height: int
    quality: int


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

KINDS: tuple[type[Event], ...] = (
    AgentStart,
    AgentStop,
    *TUPLE_KINDS,
    RouteSwitch,
    RouteDecision,
    LinkCost,
    QueueSample,
    LinkLost,
    RefusalCount,
    SpillSample,
    RoutingOverhead,
    FacesTrue,
    FacesSeen,
    VideoSource,
    OperatorFault,
)
