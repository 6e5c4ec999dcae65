"""The tables of flows: declarations. ``making`` makes them."""

from orchestrator.results.columns import COUNT, COUNTS, REAL, TEXT
from orchestrator.results.contribution import Later, Table

_MAKING = "orchestrator.apps.flows.analytics.making"

FLOWS = Table(
    "flows",
    "a second of a flow, counted from when its source began: what was sent in it, what of that was delivered "
    "and how late (`delays_ns`: delay, count, delay, count …), and what arrived in it, whenever it was sent",
    {
        "run": TEXT,
        "app": TEXT,
        "flow": TEXT,
        "boot": COUNT,
        "second": COUNT,
        "t_ns": COUNT,
        "sent_packets": COUNT,
        "sent_bytes": COUNT,
        "delivered_packets": COUNT,
        "delivered_bytes": COUNT,
        "delay_mean_s": REAL,
        "delay_min_s": REAL,
        "delay_max_s": REAL,
        "jitter_s": REAL,
        "delays_ns": COUNTS,
        "arrived_packets": COUNT,
        "arrived_bytes": COUNT,
    },
    ("app", "flow", "boot", "second"),
    Later(f"{_MAKING}:flow_seconds"),
    shared=True,
)

FLOW_TOTALS = Table(
    "flow_totals",
    "a flow, from the start of the run to its end",
    {
        "run": TEXT,
        "app": TEXT,
        "flow": TEXT,
        "source": TEXT,
        "sink": TEXT,
        "protocol": TEXT,
        "sent_packets": COUNT,
        "sent_bytes": COUNT,
        "skipped": COUNT,
        "acknowledged_bytes": COUNT,
        "connections": COUNT,
        "failures": COUNT,
        "received_packets": COUNT,
        "received_bytes": COUNT,
        "duplicates": COUNT,
        "reordered": COUNT,
        "late": COUNT,
    },
    ("app", "flow"),
    Later(f"{_MAKING}:flow_totals"),
    shared=True,
)

TABLES = (FLOWS, FLOW_TOTALS)
