"""What a node reports of moving interests, and whose word about it is believed.

A part of a node is ``sensor`` with a type of events, ``consumer`` or ``home`` with the name of a query,
``hosting`` with that of a query whose operators move, ``link`` with that of a node, or ``node``. ``at_ns``
and ``start_ns`` are times of the drives, from the beginning on; places are in metres.
"""

from collections.abc import Iterable

from msgspec import Struct

from node_agent.apps.mcep.config import InterestConfig, Settings
from node_agent.apps.mcep.reuse.deployed import split_key
from node_agent.apps.mcep.reusing.telemetry import SelectionsDecided, SelectionsShared, manager_part
from node_agent.apps.mcep.situations import SENSED
from node_agent.model.telemetry import Event
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.kinds import COUNTER, TIME_NS, RecordKinds, Rule, tags_of

ENDLESS_NS = 4_000_000_000_000_000_000
"""Stands for a time without end: once all clients have left, everything has arrived."""


class SensorRead(Event, tag="sensor_read", frozen=True):
    """A client's sensor saw something. ``value``: such as a speed in m/s or a lane."""

    part: str
    type: str
    number: int
    at_ns: int
    x: float
    y: float
    value: str


class InterestSwitched(Event, tag="interest_switched", frozen=True):
    """The interest of a query moved, at its home. ``epoch``: counts from 1. ``x``, ``y``, ``radius``: of the
    new region; without them the query ended. ``since_ns``: from when on streams begin. ``how``: the graph
    ``moved`` there, ``began`` there, was ``prepared`` there, or was ``shared`` with another query; empty at
    the end."""

    part: str
    query: str
    epoch: int
    start_ns: int
    since_ns: int
    x: float | None
    y: float | None
    radius: float | None
    how: str = ""


class SituationFound(Event, tag="situation_found", frozen=True):
    """A result came to the client that the query follows; the ``number``-th of its query there.

    ``x``, ``y``: the middle of the box around its events. ``ancestors``: the events it was made of, such as
    ``car7#12``, the first 64. ``born``: the epoch for which it was computed first. ``by``: the query whose
    selection it came from, if that is another one. ``precision``, ``recall``: how well the atomic events
    behind it stand for those that it would have without reuse; null if its query shares nothing.
    """

    part: str
    query: str
    number: int
    type: str
    at_ns: int
    epoch: int
    born: int
    historical: bool
    x: float
    y: float
    facts: str
    ancestors: tuple[str, ...]
    by: str | None = None
    precision: float | None = None
    recall: float | None = None


class InterestLink(Event, tag="interest_link", frozen=True):
    """What was sent to a node since the agent started, and what waits for it now."""

    part: str
    neighbour: str
    messages: int
    bytes: int
    connections: int
    waiting: int


class InterestBroker(Event, tag="interest_broker", frozen=True):
    """What a broker keeps and has done since its agent started.

    ``arrived_ns``: up to which time everything that clients saw has arrived; 4e18 once all have left.
    ``waiting``: messages before operators. ``streamed``: events sent to operators, ``skipped``: those that
    suppression left out.
    ``processed``, ``reused``: selections of operators. ``refused``: what nodes may not say.
    """

    part: str
    arrived_ns: int
    stored: int
    waiting: int
    streamed: int
    skipped: int
    processed: int
    reused: int
    refused: int


class InterestClient(Event, tag="interest_client", frozen=True):
    """How far a client is. ``handovers``: how often it came to another broker's area. ``unplaced``: places
    that have not had their effect."""

    part: str
    told_ns: int
    seen: int
    handovers: int
    unplaced: int


class InterestStalled(Event, tag="interest_stalled", frozen=True):
    """Nothing goes on at a node, and why; an empty reason: it goes on again."""

    part: str
    reason: str


class OperatorOrdered(Event, tag="operator_ordered", frozen=True):
    """An operator is to move, says its query's home. ``why``: in words. ``state``: bytes of immutable
    state."""

    part: str
    query: str
    operator: str
    migration: int
    source: str
    target: str
    method: str
    state: int
    why: str


class OperatorPlaced(Event, tag="operator_placed", frozen=True):
    """Where an operator is, says its query's home. ``migration``: 0 for where it began. ``outcome``:
    ``deployed``, ``moved``, or why it stayed at ``source``."""

    part: str
    query: str
    operator: str
    migration: int
    source: str
    target: str
    outcome: str


class OperatorNoted(Event, tag="operator_noted", frozen=True):
    """A step of a migration, at one of its brokers. ``what``: ``began``, ``state_kept``, ``handed_over``,
    ``took_over`` and others of live migration."""

    part: str
    query: str
    operator: str
    migration: int
    what: str
    detail: str


class OperatorTraffic(Event, tag="operator_traffic", frozen=True):
    """What a broker did for a query's operators that move since its agent started. ``state_copied``,
    ``input_copied``: bytes for new brokers. ``stream_bdp``, ``copy_bdp``: bytes of streams and of copies,
    each times the microseconds to the broker that they went to. ``planning``: messages that it sent to agree
    on plans. ``plans``: how many plans its operators followed."""

    part: str
    query: str
    state_copied: int
    input_copied: int
    stream_bdp: int
    copy_bdp: int
    planning: int
    plans: int


KINDS: tuple[type[Event], ...] = (
    SensorRead,
    InterestSwitched,
    SituationFound,
    InterestLink,
    InterestBroker,
    InterestClient,
    InterestStalled,
    OperatorOrdered,
    OperatorPlaced,
    OperatorNoted,
    OperatorTraffic,
    SelectionsDecided,
    SelectionsShared,
)
MOVING = OperatorOrdered, OperatorPlaced, OperatorNoted, OperatorTraffic
NODE = "node"
MOST_ANCESTORS = 64


def sensor(type: str) -> str:
    return f"sensor {type}"


def consumer(query: str) -> str:
    return f"consumer {query}"


def home(query: str) -> str:
    return f"home {query}"


def hosting(query: str) -> str:
    return f"hosting {query}"


def link(neighbour: str) -> str:
    return f"link {neighbour}"


class Scope(Struct, frozen=True):
    """What a part can report about."""

    types: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    """Queries that share selections with each other."""


RECORDS = RecordKinds(
    events=KINDS,
    bounds={
        **dict.fromkeys(
            (
                "number",
                "epoch",
                "born",
                "messages",
                "bytes",
                "connections",
                "waiting",
                "stored",
                "streamed",
                "skipped",
                "processed",
                "reused",
                "refused",
                "seen",
                "handovers",
                "unplaced",
                "migration",
                "state",
                "state_copied",
                "input_copied",
                "stream_bdp",
                "copy_bdp",
                "planning",
                "plans",
                "selections",
                "comparisons",
                "rounds",
            ),
            COUNTER,
        ),
        **dict.fromkeys(("at_ns", "start_ns", "since_ns", "arrived_ns", "told_ns", "waited_ns"), TIME_NS),
    },
    subject="part",
    rules=(
        Rule("sensor", tags_of(SensorRead), "type", "types"),
        Rule("query", tags_of(InterestSwitched, SituationFound, *MOVING), "query", "queries"),
        Rule("manager", tags_of(SelectionsDecided, SelectionsShared), "manager", "managers"),
        Rule("sharing", tags_of(SelectionsShared), "query", "sharing"),
        Rule("sharing", tags_of(SelectionsShared, SituationFound), "by", "sharing"),
        Rule("link", tags_of(InterestLink), "neighbour", "neighbours"),
    ),
    words={
        "part": "report about a part of another node",
        "sensor": "report what a sensor saw that it does not have",
        "query": "report about a query that it neither moves nor follows",
        "manager": "report about a selection manager that it does not run",
        "sharing": "report of a query that shares no selections there",
        "link": "report about a link that it does not use",
    },
)


def scopes_of(configs: Iterable[InterestConfig]) -> AppScopes:
    scopes: dict[str, dict[str, Struct]] = {}
    for config in configs:
        settings, node = config.settings, config.node
        own: dict[str, Struct] = {NODE: Scope()}
        groups = _sharing(settings)
        for manager, (broker, sharing) in groups.items():
            if broker == node:
                own[manager_part(manager)] = Scope(managers=(manager,), sharing=sharing)
        for each in settings.queries:
            if each.home == node:
                own[home(each.name)] = Scope(queries=(each.name,))
            if each.migrate is not None and node in settings.areas:
                own[hosting(each.name)] = Scope(queries=(each.name,))
            if each.focal == node:
                others = {name for _, group in groups.values() if each.name in group for name in group}
                own[consumer(each.name)] = Scope(queries=(each.name,), sharing=tuple(sorted(others)))
        if node in settings.clients:
            own.update({sensor(type): Scope(types=(type,)) for type in SENSED})
        own.update({link(each): Scope(neighbours=(each,)) for each in peers_of(config)})
        scopes[node] = own
    return AppScopes("interest", scopes)


def _sharing(settings: Settings) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By selection manager, its broker and its queries."""
    return {
        each.name: (each.broker, tuple(split_key(key)[0] for key in each.operators))
        for each in (settings.reuse.managers if settings.reuse is not None else ())
    }


def peers_of(config: InterestConfig) -> tuple[str, ...]:
    """The nodes that a node may send to."""
    settings, node = config.settings, config.node
    brokers = tuple(each for each in settings.areas if each != node)
    if node not in settings.areas:
        return brokers
    focal = {each.focal for each in settings.queries if each.home == node}
    return (*brokers, *sorted(focal))
