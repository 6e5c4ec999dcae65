"""Decides what is new: how far the stream has come, what the run directories have now, what goes next.

An offset says of every run how much of it was fed to the stream: of one that goes on so many bytes, of one
that ended which verdict. What is between two of them depends on nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

VERSION = 1
"""Of offsets. Raise it when their meaning changes: all runs are then handed on again, and read only if they
changed.
"""
GROWTH = 1.5
"""A run that goes on is taken in again when it has grown so much: all its readings together cost at most
three times the last one.
"""

Mark = int | str
"""A number: bytes of a run that goes on. A text: which verdict of a run that has ended, and how much of it is
there."""
Marks = dict[str, Mark]
"""By run, as ``experiment/id``."""
Offset = dict[str, Any]


class Arrival(NamedTuple):
    """A run to take in. ``ended``: it has a verdict."""

    run: str
    ended: bool


def beginning() -> Offset:
    return {"version": VERSION, "made_by": "", "runs": {}}


def following(start: Offset, seen: Mapping[str, Mark], made_by: str, most: int) -> Offset:
    """Returns the next offset; ``start`` if nothing is new.

    ``seen``: all runs as they are now. ``made_by``: changes with the code that makes tables and results; then
    every run is new. ``most``: so many runs at once.
    """
    known = marks_of(start) if start.get("made_by") == made_by else {}
    due = [run for run, mark in seen.items() if _is_due(known.get(run), mark)]
    if not due:
        return start
    now: Marks = {run: mark for run, mark in known.items() if run in seen}
    now |= {run: seen[run] for run in due[:most]}
    return {"version": VERSION, "made_by": made_by, "runs": now}


def between(start: Offset, end: Offset) -> Sequence[Arrival]:
    """Returns the runs between two offsets, in the same order each time."""
    known = marks_of(start) if start.get("made_by") == end.get("made_by") else {}
    return [
        Arrival(run, isinstance(mark, str))
        for run, mark in sorted(marks_of(end).items())
        if known.get(run) != mark
    ]


def marks_of(offset: Offset) -> Marks:
    """Returns what it says of runs; nothing if another version of Rove wrote it."""
    found = offset.get("runs")
    return dict(found) if offset.get("version") == VERSION and isinstance(found, dict) else {}


def _is_due(known: Mark | None, now: Mark) -> bool:
    if isinstance(now, str):
        return known != now
    if isinstance(known, int):
        return now < known or now >= known * GROWTH
    return known is None and now > 0
