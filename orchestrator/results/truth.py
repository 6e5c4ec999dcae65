"""Declares the files of ground truth that the radio writes, and their columns."""

from collections.abc import Mapping

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT, Columns

LINKS, POSITIONS, DELIVERIES = "links.jsonl", "positions.jsonl", "deliveries.jsonl"

TRUTH: Mapping[str, Columns] = {
    LINKS: {"t_ns": COUNT, "src": TEXT, "dst": TEXT, "up": FLAG, "cost": REAL},
    POSITIONS: {"node": TEXT, "t_ns": COUNT, "x": REAL, "y": REAL},
    DELIVERIES: {
        "t_ns": COUNT,
        "src": TEXT,
        "dst": TEXT,
        "attempted": COUNT,
        "delivered": COUNT,
        "expected": REAL,
        "snr_db": REAL,
    },
}
