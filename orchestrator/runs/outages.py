"""Reads the faults of a run from its events, each from its beginning to its end."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.runs.events import by_hand, fault_in, fault_note
from orchestrator.runs.files import read_lines

CRASH, SILENCE = "crash", "silence"
ENDED_BY = {
    CRASH: "restart",
    SILENCE: "unsilence",
    "partition": "heal",
    "cut": "mend",
    "degrade": "recover",
    "move": "release",
}
"""The actions that begin a fault, and those that end it."""
_ENDS = {end: begin for begin, end in ENDED_BY.items()}
_IN_WORDS = {
    CRASH: "agent killed on",
    SILENCE: "radio silent on",
    "partition": "network split:",
    "cut": "link cut:",
    "degrade": "link weakened:",
    "move": "moved:",
}


class Outage(NamedTuple):
    """In the time of the run's telemetry; ``until_ns`` is None if it lasted to the end. ``node``: whom it
    hit; a node, or several in words. ``note``: why that one, and who did it, if not the experiment file.
    """

    what: str
    node: str
    from_ns: int
    until_ns: int | None
    note: str = ""


def read_outages(events: Path) -> tuple[Outage, ...]:
    """Reads a run's events.jsonl; returns none without one."""
    return outages(read_lines(events))


def outages(events: Iterable[dict[str, Any]]) -> tuple[Outage, ...]:
    """Returns the outages in the order in which they began."""
    found: list[Outage] = []
    for event in events:
        fault, t_ns = fault_in(event), event.get("t_ns")
        if fault is None or not isinstance(t_ns, int):
            continue
        action, node = fault
        if action in _IN_WORDS:
            found.append(Outage(action, node, t_ns, None, fault_note(event)))
            continue
        for index, begun in enumerate(found):
            if begun.until_ns is None and (begun.what, begun.node) == (_ENDS.get(action), node):
                found[index] = begun._replace(until_ns=t_ns)
    return tuple(sorted(found, key=lambda outage: outage.from_ns))


def in_words(what: str, node: str, replicas: Sequence[str], note: str = "") -> str:
    """Describes a fault: ``agent killed on n3 (detect/0)``."""
    whom = f" ({', '.join(replicas)})" if replicas else ""
    return f"{_IN_WORDS.get(what, what)} {node}{whom}{f'; {note}' if note else ''}"


def interventions(events: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Returns what was done by hand, by whom and when, in words."""
    return tuple(
        f"{in_words(*fault, ())}, by {by_hand(event)} at {str(event.get('t'))[:19]}"
        for event in events
        if (fault := fault_in(event)) is not None and fault[0] in _IN_WORDS and by_hand(event)
    )
