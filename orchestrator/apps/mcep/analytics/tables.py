"""The tables of moving interests. Their rows are records as nodes wrote them."""

from collections.abc import Callable

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT, TEXTS
from orchestrator.results.contribution import AsRead, Table
from orchestrator.results.spark import Ingest

_OF = {"run": TEXT, "app": TEXT, "node": TEXT, "boot": COUNT, "t_ns": COUNT}


def _records(kind: str) -> Callable[[Ingest], AsRead]:
    return lambda ingest: AsRead(kind)


SENSOR_EVENTS = Table(
    "sensor_events",
    "something that a client's sensor saw; `at_ns`: in the time of the drives",
    {**_OF, "type": TEXT, "number": COUNT, "at_ns": COUNT, "x": REAL, "y": REAL, "value": TEXT},
    ("app", "t_ns", "node", "number"),
    _records("sensor_read"),
    shared=True,
)
INTEREST_SWITCHES = Table(
    "interest_switches",
    "a switch of a query's interest, by its home; `start_ns` and `since_ns` are in the time of the drives, "
    "the region is empty if the query ended; `how` its graph came there: moved, began, prepared, shared",
    {
        **_OF,
        "query": TEXT,
        "epoch": COUNT,
        "start_ns": COUNT,
        "since_ns": COUNT,
        "x": REAL,
        "y": REAL,
        "radius": REAL,
        "how": TEXT,
    },
    ("app", "t_ns", "query", "epoch"),
    _records("interest_switched"),
    shared=True,
)
SITUATIONS = Table(
    "situations",
    "a result that the focal object of a query got; `at_ns`: in the time of the drives; `by`: the other "
    "query whose selection it came from; `precision`, `recall`: against the result without reuse",
    {
        **_OF,
        "query": TEXT,
        "number": COUNT,
        "type": TEXT,
        "at_ns": COUNT,
        "epoch": COUNT,
        "born": COUNT,
        "historical": FLAG,
        "x": REAL,
        "y": REAL,
        "facts": TEXT,
        "ancestors": TEXTS,
        "by": TEXT,
        "precision": REAL,
        "recall": REAL,
    },
    ("app", "t_ns", "query", "number"),
    _records("situation_found"),
    shared=True,
)
INTEREST_BROKERS = Table(
    "interest_brokers",
    "a sample of what a broker keeps and has done since its agent started",
    {
        **_OF,
        "arrived_ns": COUNT,
        **dict.fromkeys(
            ("stored", "waiting", "streamed", "skipped", "processed", "reused", "refused"), COUNT
        ),
    },
    ("app", "t_ns", "node"),
    _records("interest_broker"),
    shared=True,
)
INTEREST_CLIENTS = Table(
    "interest_clients",
    "a sample of how far a client is",
    {**_OF, "told_ns": COUNT, "seen": COUNT, "handovers": COUNT, "unplaced": COUNT},
    ("app", "t_ns", "node"),
    _records("interest_client"),
    shared=True,
)
INTEREST_LINKS = Table(
    "interest_links",
    "what a node had sent to another one since its agent started, and what waited for it",
    {**_OF, "neighbour": TEXT, **dict.fromkeys(("messages", "bytes", "connections", "waiting"), COUNT)},
    ("app", "t_ns", "node", "neighbour"),
    _records("interest_link"),
    shared=True,
)
INTEREST_STALLS = Table(
    "interest_stalls",
    "nothing goes on at a node, and why; an empty `reason`: it goes on again",
    {**_OF, "reason": TEXT},
    ("app", "t_ns", "node"),
    _records("interest_stalled"),
    shared=True,
)
OPERATOR_ORDERS = Table(
    "operator_orders",
    "an operator of a query is to move, and why; `state`: bytes of its immutable state",
    {
        **_OF,
        **dict.fromkeys(("query", "operator"), TEXT),
        "migration": COUNT,
        **dict.fromkeys(("source", "target", "method"), TEXT),
        "state": COUNT,
        "why": TEXT,
    },
    ("app", "t_ns", "query", "operator", "migration"),
    _records("operator_ordered"),
    shared=True,
)
OPERATOR_PLACES = Table(
    "operator_places",
    "where an operator of a query that may move is from then on: `deployed`, `moved`, or why it stayed at "
    "`source`",
    {
        **_OF,
        **dict.fromkeys(("query", "operator"), TEXT),
        "migration": COUNT,
        **dict.fromkeys(("source", "target", "outcome"), TEXT),
    },
    ("app", "t_ns", "query", "operator", "migration"),
    _records("operator_placed"),
    shared=True,
)
OPERATOR_STEPS = Table(
    "operator_steps",
    "a step of an operator's migration, at one of its brokers",
    {
        **_OF,
        **dict.fromkeys(("query", "operator"), TEXT),
        "migration": COUNT,
        **dict.fromkeys(("what", "detail"), TEXT),
    },
    ("app", "t_ns", "query", "operator", "migration", "node"),
    _records("operator_noted"),
    shared=True,
)
OPERATOR_TRAFFIC = Table(
    "operator_traffic",
    "what a broker did since its agent started for operators that may move: bytes copied, bytes of streams "
    "and copies times microseconds of latency, messages sent to agree on plans, plans followed",
    {
        **_OF,
        "query": TEXT,
        **dict.fromkeys(
            ("state_copied", "input_copied", "stream_bdp", "copy_bdp", "planning", "plans"), COUNT
        ),
    },
    ("app", "t_ns", "node", "query"),
    _records("operator_traffic"),
    shared=True,
)
SELECTION_MANAGERS = Table(
    "selection_managers",
    "a sample of what a selection manager had decided: selections, those of them that were processed, "
    "comparisons, periods, how long selections waited for the end of their period together, disparity",
    {
        **_OF,
        "manager": TEXT,
        **dict.fromkeys(("selections", "processed", "comparisons", "rounds", "waited_ns"), COUNT),
        "disparity": REAL,
    },
    ("app", "t_ns", "node", "manager"),
    _records("selections_decided"),
    shared=True,
)
SHARED_SELECTIONS = Table(
    "shared_selections",
    "a sample of how many selections of `query` had got results of selections of `by`, with mean precision "
    "and recall by atomic events",
    {
        **_OF,
        "manager": TEXT,
        "by": TEXT,
        "query": TEXT,
        "selections": COUNT,
        "precision": REAL,
        "recall": REAL,
    },
    ("app", "t_ns", "node", "manager", "by", "query"),
    _records("selections_shared"),
    shared=True,
)
TABLES = (
    SENSOR_EVENTS,
    INTEREST_SWITCHES,
    SITUATIONS,
    INTEREST_BROKERS,
    INTEREST_CLIENTS,
    INTEREST_LINKS,
    INTEREST_STALLS,
    OPERATOR_ORDERS,
    OPERATOR_PLACES,
    OPERATOR_STEPS,
    OPERATOR_TRAFFIC,
    SELECTION_MANAGERS,
    SHARED_SELECTIONS,
)
