"""The agent's own events. Each becomes one JSON line: the envelope, then the event's own fields.

Applications have kinds of their own (``node_agent.apps``). Kinds and fields are a contract with the analysis:
``orchestrator.analytics.schemas`` has the same columns, and a test compares the two.
"""

from msgspec import Struct


class Envelope(Struct, frozen=True, kw_only=True):
    """The fields that every record starts with; ``(node, boot, seq)`` is unique, and ``seq`` has no gaps in a
    boot.

    ``app``: the application that reports, empty for the agent itself. Old records have none.
    """

    run: str
    node: str
    boot: int
    app: str = ""
    seq: int
    t_ns: int
    kind: str


class Event(Struct, frozen=True, tag_field="kind"):
    """Base of all kinds of events."""


class AgentStart(Event, tag="agent_start", frozen=True):
    version: str
    clock: str
    replicas: tuple[str, ...]


KILLED = "killed by a fault"
"""The reason of agents in the simulator that stop where a real one would be killed. They keep nothing."""


class AgentStop(Event, tag="agent_stop", frozen=True):
    """The last record of a boot that ended in order. If it is there, the end of the boot's records was not
    lost.
    """

    reason: str


class RefusalCount(Event, tag="refused", frozen=True):
    """What this node has refused since its agent started: ``count`` times ``what`` from ``source``.

    ``what``: a connection, a datagram of the exchange, a routing message, a probe. See ``model.refusals``.
    """

    what: str
    source: str
    reason: str
    count: int


class ExtensionFailed(Event, tag="extension_failed", frozen=True):
    """Code of an extension failed ``count`` times since the agent started; ``error`` is the last error.

    ``what``: its kind, such as a switching policy or a link-state reader. ``place``: its file and line.
    ``left_out``: it failed so often in a row that it is not called any more.
    """

    what: str
    name: str
    place: str
    error: str
    count: int
    left_out: bool


class RoutingOverhead(Event, tag="routing_overhead", frozen=True):
    """What the node's routing daemon has sent since it started, for one kind of message."""

    protocol: str
    message: str
    sent: int
    sent_bytes: int
    forwarded: int
    forwarded_bytes: int


class Neighbours(Event, tag="neighbours", frozen=True):
    """The links of this node as its routing layer sees them: ``costs`` by neighbour, in units of ``metric``.

    Written when they have changed, by agents of testbeds that do not know the true links.
    """

    metric: str
    source: str
    costs: dict[str, float]


AGENT_KINDS: tuple[type[Event], ...] = (
    AgentStart,
    AgentStop,
    RefusalCount,
    ExtensionFailed,
    RoutingOverhead,
    Neighbours,
)
