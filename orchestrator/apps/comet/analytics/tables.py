"""The tables of the detection of events: declarations. ``making`` makes them."""

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT, TEXTS
from orchestrator.results.contribution import Later, Table

_MAKING = "orchestrator.apps.comet.analytics.making"
_OF = {"run": TEXT, "app": TEXT, "node": TEXT, "t_ns": COUNT}

OCCURRENCES = Table(
    "occurrences",
    "an instance of an event that occurred; `start_ns` and `end_ns` are by the clock of its node",
    {**_OF, "event": TEXT, "number": COUNT, "start_ns": COUNT, "end_ns": COUNT},
    ("app", "t_ns", "event", "number"),
    Later(f"{_MAKING}:occurrences"),
    shared=True,
)
DETECTIONS = Table(
    "detections",
    "a detection at its sink; `delay_s`: since the end of its last constituent",
    {
        **_OF,
        "pattern": TEXT,
        "number": COUNT,
        "start_ns": COUNT,
        "end_ns": COUNT,
        "delay_s": REAL,
        "told": COUNT,
        "constituents": TEXTS,
    },
    ("app", "t_ns", "pattern", "number"),
    Later(f"{_MAKING}:detections"),
    shared=True,
)
EVENT_LINKS = Table(
    "event_links",
    "a sample of what a node sent to a neighbour since its agent started, and of what waits for it",
    {
        **_OF,
        "boot": COUNT,
        "neighbour": TEXT,
        "instances": COUNT,
        "references": COUNT,
        "requests": COUNT,
        "marks": COUNT,
        "bytes": COUNT,
        "connections": COUNT,
        "waiting": COUNT,
        "waiting_bytes": COUNT,
    },
    ("app", "t_ns", "node", "neighbour"),
    Later(f"{_MAKING}:event_links"),
    shared=True,
)
EVENT_CONTACTS = Table(
    "event_contacts",
    "a node connected to a neighbour (`up`), or the connection broke; `lasted_ns`: the time that ended so",
    {**_OF, "boot": COUNT, "neighbour": TEXT, "up": FLAG, "lasted_ns": COUNT},
    ("app", "t_ns", "node", "neighbour"),
    Later(f"{_MAKING}:event_contacts"),
)
EVENT_STORES = Table(
    "event_stores",
    "a sample of what a node keeps: instances for matching, matches for requests, matches that wait for an "
    "absence",
    {**_OF, "instances": COUNT, "matches": COUNT, "undecided": COUNT},
    ("app", "t_ns", "node"),
    Later(f"{_MAKING}:event_stores"),
)
EVENT_STEPS = Table(
    "event_steps",
    "`arrived`: an instance came to a node that matches it for a pattern; `asked`: a node asked for "
    "instances of `events` between two moments; `dropped`: a full store gave an instance up",
    {
        **_OF,
        "step": TEXT,
        "pattern": TEXT,
        "event": TEXT,
        "number": COUNT,
        "events": TEXTS,
        "from_ns": COUNT,
        "until_ns": COUNT,
    },
    ("app", "t_ns", "node", "step", "event", "number"),
    Later(f"{_MAKING}:event_steps"),
    shared=True,
)
TABLES = (OCCURRENCES, DETECTIONS, EVENT_LINKS, EVENT_CONTACTS, EVENT_STORES, EVENT_STEPS)
