"""What was refused in a run, by whom and from whom: as values for the verdict, and as text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from node_agent.model.refusals import OTHERS, Refusal
from orchestrator.foreign_text import one_line

ORCHESTRATOR = "orchestrator"
RECORD = "record"
MOST_REFUSED = 64
"""Entries in a verdict; the rest, with smaller counts, is summed up."""


class RefusedBy(Struct, frozen=True):
    """``by``, a node or the orchestrator, refused ``what`` from ``source`` for ``reason``."""

    by: str
    what: str
    source: str
    reason: str
    count: int


def by_orchestrator(refusals: Iterable[Refusal]) -> list[RefusedBy]:
    return [RefusedBy(ORCHESTRATOR, each.what, each.source, each.reason, each.count) for each in refusals]


def most_frequent(refused: Iterable[RefusedBy]) -> tuple[RefusedBy, ...]:
    """Returns at most ``MOST_REFUSED``, the largest counts first; the rest is one entry."""
    ordered = sorted(refused, key=lambda one: (-one.count, one.by, one.what, one.source, one.reason))
    if len(ordered) <= MOST_REFUSED:
        return tuple(ordered)
    shown, rest = ordered[: MOST_REFUSED - 1], ordered[MOST_REFUSED - 1 :]
    return (*shown, RefusedBy(OTHERS, OTHERS, OTHERS, OTHERS, sum(one.count for one in rest)))


def refused_text(refused: Sequence[Mapping[str, Any]], most: int = 3) -> str:
    """Returns ``1,204 connections from 10.77.0.9 (forged), 3 records of
    node c``; empty if nothing was refused.

    Refusals by several nodes from one source are one item.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for entry in refused:
        key = (str(entry["what"]), str(entry["source"]), str(entry["reason"]))
        counts[key] = counts.get(key, 0) + int(entry["count"])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    items = [_refusal(*key, count) for key, count in ordered[:most]]
    if rest := sum(count for _, count in ordered[most:]):
        items.append(f"{rest:,} others")
    return ", ".join(items)


def _refusal(what: str, source: str, reason: str, count: int) -> str:
    kind, sender, why = (one_line(word, 100) for word in (what, source, reason))
    things = kind + ("" if count == 1 else "s")
    return f"{count:,} {things} {'of node' if what == 'record' else 'from'} {sender} ({why})"
