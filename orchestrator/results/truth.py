"""Declares the files of ground truth that the radio writes, and their columns."""

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT, Columns

Rows = list[tuple[Any, ...]]

LINKS, POSITIONS, DELIVERIES = "links.jsonl", "positions.jsonl", "deliveries.jsonl"
AIRTIME = "airtime.jsonl"

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
    AIRTIME: {"t_ns": COUNT, "node": TEXT, "sent_ns": COUNT},
}

NEXT = "next_ns"
"""Of a change of a link: when the same link changes again; null if it does not."""


def _with_next(rows: Rows) -> Rows:
    """Adds ``NEXT`` to the rows of ``LINKS``, in the order of time."""
    following: dict[tuple[str, str], int] = {}
    found = []
    for row in sorted(rows, key=_by_time, reverse=True):
        t_ns, src, dst, _, _ = row
        found.append((*row, following.get((src, dst))))
        following[src, dst] = t_ns
    found.reverse()
    return found


def _by_time(row: tuple[Any, ...]) -> tuple[int, bool]:
    return row[0], bool(row[3])


DERIVED: Mapping[str, tuple[Columns, Callable[[Rows], Rows]]] = {LINKS: ({NEXT: COUNT}, _with_next)}
"""By file: columns that are added when it is read, and what adds them to all its rows."""


def columns_of(file: str) -> Columns:
    """Returns the columns of a file of the ground truth, with those that are added."""
    return {**TRUTH[file], **(DERIVED[file][0] if file in DERIVED else {})}
