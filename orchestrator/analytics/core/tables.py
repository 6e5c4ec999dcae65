"""Declares the tables of a run that concern no single application. ``making`` makes them."""

from orchestrator.results import truth
from orchestrator.results.columns import COUNT, FLAG, MOMENT, REAL, TEXT, TEXT_MAP, TEXTS
from orchestrator.results.contribution import Later, Table
from orchestrator.results.truth import TRUTH

_MAKING = "orchestrator.analytics.core.making"

RUNS = Table(
    "runs",
    "a run: factors (their values are JSON), seed, verdict, measured window",
    {
        "run": TEXT,
        "experiment": TEXT,
        "invocation": TEXT,
        "factors": TEXT_MAP,
        "seed": COUNT,
        "clock": TEXT,
        "verdict": TEXT,
        "reasons": TEXTS,
        "started": MOMENT,
        "finished": MOMENT,
        "measure_from_ns": COUNT,
        "measure_until_ns": COUNT,
        "first_ns": COUNT,
        "ended_ns": COUNT,
        "records": COUNT,
        "duplicates": COUNT,
        "corrupt_lines": COUNT,
        "refused": COUNT,
        "versions": TEXT_MAP,
    },
    (),
    Later(f"{_MAKING}:runs"),
    shared=True,
)

QUARANTINE = Table(
    "quarantine",
    "a line of telemetry or ground truth that enters no other table: where it is (`file` in the run's "
    "directory, `offset`, `length`), whether it is `corrupt` or `refused` (its node cannot have written it), "
    "why, and how it begins; at most 1000 of a boot",
    {
        "run": TEXT,
        "node": TEXT,
        "boot": COUNT,
        "file": TEXT,
        "offset": COUNT,
        "length": COUNT,
        "state": TEXT,
        "reason": TEXT,
        "head": TEXT,
    },
    ("file", "offset"),
    Later(f"{_MAKING}:quarantine"),
)

APPS = Table(
    "apps",
    "an application of a run, and the nodes of its sources and sinks",
    {"run": TEXT, "app": TEXT, "kind": TEXT, "source_nodes": TEXTS, "sink_nodes": TEXTS},
    ("app",),
    Later(f"{_MAKING}:apps"),
)

NODES = Table(
    "nodes",
    "a boot of an agent: records, missing, corrupt, refused, complete (it begins with a start, ends with a "
    "stop, misses nothing) or not",
    {
        "run": TEXT,
        "node": TEXT,
        "boot": COUNT,
        "records": COUNT,
        "first_seq": COUNT,
        "last_seq": COUNT,
        "missing": COUNT,
        "duplicates": COUNT,
        "corrupt_lines": COUNT,
        "refused": COUNT,
        "first_ns": COUNT,
        "last_ns": COUNT,
        "started": FLAG,
        "stopped": FLAG,
        "stop_reason": TEXT,
        "complete": FLAG,
    },
    ("node", "boot"),
    Later(f"{_MAKING}:nodes"),
    shared=True,
)

LINKS_TRUTH = Table(
    "links_truth",
    "a directed link that was up with this cost for an interval (`down_ns` is null: to the end)",
    {"run": TEXT, "src": TEXT, "dst": TEXT, "up_ns": COUNT, "down_ns": COUNT, "cost": REAL},
    ("up_ns", "src", "dst"),
    Later(f"{_MAKING}:links_truth"),
)

POSITIONS = Table(
    "positions",
    "where a node was",
    {"run": TEXT, **TRUTH[truth.POSITIONS]},
    ("t_ns", "node"),
    Later(f"{_MAKING}:positions"),
)

DELIVERIES = Table(
    "deliveries",
    "frames sent over a link in a second, those that arrived, and the share of full-size frames that should "
    "arrive by its SNR (802.11b only)",
    {"run": TEXT, **TRUTH[truth.DELIVERIES]},
    ("t_ns", "src", "dst"),
    Later(f"{_MAKING}:deliveries"),
)

CONNECTIVITY = Table(
    "connectivity",
    "whether every source of an application had a path to a sink, in intervals",
    {"run": TEXT, "app": TEXT, "from_ns": COUNT, "until_ns": COUNT, "connected": FLAG},
    ("app", "from_ns"),
    Later(f"{_MAKING}:connectivity"),
)
