"""Reads the faults of a run from its events, each from its beginning to its end."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.runs.events import fault_in
from orchestrator.runs.files import read_lines

CRASH, SILENCE = "crash", "silence"
_ENDS = {"restart": CRASH, "unsilence": SILENCE}
_IN_WORDS = {CRASH: "agent killed", SILENCE: "radio silent"}


class Outage(NamedTuple):
    """In the time of the run's telemetry; ``until_ns`` is None if it lasted to the end."""

    what: str
    node: str
    from_ns: int
    until_ns: int | None


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
            found.append(Outage(action, node, t_ns, None))
            continue
        for index, begun in enumerate(found):
            if begun.until_ns is None and (begun.what, begun.node) == (_ENDS.get(action), node):
                found[index] = begun._replace(until_ns=t_ns)
    return tuple(sorted(found, key=lambda outage: outage.from_ns))


def in_words(what: str, node: str, replicas: Sequence[str]) -> str:
    """Describes a fault: ``agent killed on n3 (detect/0)``."""
    whom = f" ({', '.join(replicas)})" if replicas else ""
    return f"{_IN_WORDS.get(what, what)} on {node}{whom}"
