"""What a node reports of the detection of events, and whose word about it is believed.

A part of a node is ``source`` with the name of an event, ``sink`` with that of a pattern, ``link`` with that
of a neighbour, or ``node``. Times are by the clock of the node where an event occurred.
"""

from collections.abc import Iterable

from msgspec import Struct

from node_agent.apps.comet.model import DetectConfig
from node_agent.model.telemetry import Event
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.kinds import COUNTER, SIZE, TIME_NS, RecordKinds, Rule, tags_of


class EventOccurred(Event, tag="event_occurred", frozen=True):
    part: str
    event: str
    number: int
    start_ns: int
    end_ns: int


class EventDetected(Event, tag="event_detected", frozen=True):
    """``constituents``: like ``smoke#3``, in order of their times. ``number``: counts those of the node."""

    part: str
    pattern: str
    number: int
    start_ns: int
    end_ns: int
    constituents: tuple[str, ...]


class EventArrived(Event, tag="event_arrived", frozen=True):
    """An instance came to a node that matches it, or watches it."""

    part: str
    pattern: str
    event: str
    number: int


class EventAsked(Event, tag="event_asked", frozen=True):
    """A junction asked for instances of ``events`` between two moments."""

    part: str
    pattern: str
    events: tuple[str, ...]
    from_ns: int
    until_ns: int


class EventLink(Event, tag="event_link", frozen=True):
    """What was sent to a neighbour since the agent started, and what waits for it now.

    ``references``: of instances that went there before, for further patterns. ``bytes``: of contents and
    messages, without headers of the network. ``connections``: how often there was one.
    """

    part: str
    neighbour: str
    instances: int
    references: int
    requests: int
    marks: int
    bytes: int
    connections: int
    waiting: int
    waiting_bytes: int


class EventContact(Event, tag="event_contact", frozen=True):
    """A node connected to a neighbour (``up``), or the connection broke. ``lasted_ns``: what ended so."""

    part: str
    neighbour: str
    up: bool
    lasted_ns: int


class EventStore(Event, tag="event_store", frozen=True):
    """What a node keeps: instances for matching, matches for requests, matches that wait for an absence."""

    part: str
    instances: int
    matches: int
    undecided: int


class EventDropped(Event, tag="event_dropped", frozen=True):
    """A full store gave something up. ``place``: a neighbour or a pattern."""

    part: str
    what: str
    place: str
    event: str
    number: int


KINDS: tuple[type[Event], ...] = (
    EventOccurred,
    EventDetected,
    EventArrived,
    EventAsked,
    EventLink,
    EventContact,
    EventStore,
    EventDropped,
)
NODE = "node"


def source(event: str) -> str:
    return f"source {event}"


def sink(pattern: str) -> str:
    return f"sink {pattern}"


def link(neighbour: str) -> str:
    return f"link {neighbour}"


class Scope(Struct, frozen=True):
    """What a part can report about."""

    events: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()


RECORDS = RecordKinds(
    events=KINDS,
    bounds={
        **dict.fromkeys(
            (
                "number",
                "instances",
                "references",
                "requests",
                "marks",
                "bytes",
                "connections",
                "waiting",
                "matches",
                "undecided",
            ),
            COUNTER,
        ),
        "waiting_bytes": SIZE,
        **dict.fromkeys(("start_ns", "end_ns", "from_ns", "until_ns", "lasted_ns"), TIME_NS),
    },
    subject="part",
    rules=(
        Rule("source", tags_of(EventOccurred), "event", "events"),
        Rule("sink", tags_of(EventDetected), "pattern", "patterns"),
        Rule("link", tags_of(EventLink, EventContact), "neighbour", "neighbours"),
    ),
    words={
        "part": "report about a part of another node",
        "source": "say that an event occurred that does not occur there",
        "sink": "detect a pattern of another sink",
        "link": "report about a link that it does not use",
    },
)


def scopes_of(configs: Iterable[DetectConfig]) -> AppScopes:
    scopes: dict[str, dict[str, Struct]] = {}
    for config in configs:
        plan = config.plan
        own: dict[str, Struct] = {NODE: Scope()}
        own.update({source(each.name): Scope(events=(each.name,)) for each in config.events})
        wanted = {task.request for task in plan.tasks if task.sink == plan.node}
        own.update({sink(each): Scope(patterns=(each,)) for each in sorted(wanted)})
        own.update({link(each): Scope(neighbours=(each,)) for each in plan.neighbours})
        scopes[plan.node] = own
    return AppScopes("detect", scopes)
