"""Declares the tables of a dataflow. ``tuple_table`` and ``route_tables`` make them."""

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT
from orchestrator.results.contribution import Later, Table

_HERE = "orchestrator.apps.dataflow.analytics"

_TUPLES = Table(
    "tuples",
    "a tuple on its way to a `sink`, from birth to fate: `delivered`, `dropped:<reason>`, `filtered`, "
    "`absorbed`, `lost_in_transit`, `in_flight_at_end`, `never_emitted`; with several sinks, a row for each "
    "that its stream leads to",
    {
        "run": TEXT,
        "app": TEXT,
        "origin": TEXT,
        "tau": COUNT,
        "sink": TEXT,
        "born_ns": COUNT,
        "emitted_ns": COUNT,
        "delivered_ns": COUNT,
        "latency_ns": COUNT,
        "size": COUNT,
        "delivered_size": COUNT,
        "delivered_at": TEXT,
        "delivered": FLAG,
        "duplicates": COUNT,
        "drop_reason": TEXT,
        "dropped_at": TEXT,
        "last_ns": COUNT,
        "fate": TEXT,
        "in_window": FLAG,
    },
    ("app", "origin", "tau", "sink"),
    Later(f"{_HERE}.tuple_table:tuples"),
)

_HOPS = Table(
    "hops",
    "a tuple between two replicas; a time is null if that end did not report",
    {
        "run": TEXT,
        "app": TEXT,
        "origin": TEXT,
        "tau": COUNT,
        "sender": TEXT,
        "receiver": TEXT,
        "sent_ns": COUNT,
        "received_ns": COUNT,
        "sends": COUNT,
        "receptions": COUNT,
        "size": COUNT,
    },
    ("app", "origin", "tau", "sender", "receiver"),
    Later(f"{_HERE}.tuple_table:hops"),
    shared=True,
)

_SWITCHES = Table(
    "switches",
    "a replica's decision; `changed`: it chose another replica than the last one it used",
    {
        "run": TEXT,
        "app": TEXT,
        "node": TEXT,
        "t_ns": COUNT,
        "replica": TEXT,
        "downstream": TEXT,
        "old": TEXT,
        "new": TEXT,
        "old_cost": REAL,
        "new_cost": REAL,
        "source": TEXT,
        "changed": FLAG,
        "in_window": FLAG,
    },
    ("t_ns", "app", "replica", "downstream"),
    Later(f"{_HERE}.route_tables:switches"),
)

_COSTS = Table(
    "costs",
    "a cost sample",
    {
        "run": TEXT,
        "app": TEXT,
        "node": TEXT,
        "t_ns": COUNT,
        "replica": TEXT,
        "to": TEXT,
        "cost": REAL,
        "metric": TEXT,
        "source": TEXT,
    },
    ("t_ns", "app", "replica", "to"),
    Later(f"{_HERE}.route_tables:costs"),
)

_OPERATOR_FAULTS = Table(
    "operator_faults",
    "something that an operator could not use and skipped, for the `count`-th time since its boot",
    {
        "run": TEXT,
        "app": TEXT,
        "node": TEXT,
        "boot": COUNT,
        "t_ns": COUNT,
        "replica": TEXT,
        "reason": TEXT,
        "count": COUNT,
    },
    ("t_ns", "app", "replica", "reason", "count"),
    Later(f"{_HERE}.route_tables:operator_faults"),
)

TABLES = (_TUPLES, _HOPS, _SWITCHES, _COSTS, _OPERATOR_FAULTS)
