"""Describes the records of one reporter: its kinds of records, their bounds, and rules about its parts.

The agent is one reporter; each kind of application is another, and describes its records with a value of
``RecordKinds`` (see ``node_agent.apps.base.AppKind``):

    PINGS = RecordKinds(
        events=(PingSent, PingLost),
        bounds={"number": (0, 2**53)},
        subject="target",
        words={"target": "name a target that was not asked for"},
    )
"""

from collections.abc import Mapping, Sequence
from itertools import chain, cycle
from typing import Any, Literal, NamedTuple

from node_agent.model.telemetry import Event

TIME_NS = (0, 2**62)
COUNTER = (0, 2**53)
SIZE = (0, 2**50)


class Rule(NamedTuple):
    """In records of ``kinds``, ``field`` must be, or must not be, in the list ``among`` of the scope of the
    record's part; null is allowed. ``reason``: one word for a record that breaks the rule.
    """

    reason: str
    kinds: tuple[str, ...]
    field: str
    among: str
    must: Literal["be", "not be"] = "be"


Bounds = tuple[int, int]
"""The least and the largest value."""


class RowRule(NamedTuple):
    """Of a field with rows of whole numbers: what each row has, value by value, and after that any number of
    groups, such as pairs. ``most``: values in a row.
    """

    values: tuple[Bounds, ...]
    groups: tuple[Bounds, ...] = ()
    most: int = 0

    @property
    def longest(self) -> int:
        return max(self.most, len(self.values))

    def allows(self, row: Sequence[int]) -> bool:
        beyond = len(row) - len(self.values)
        if beyond and not (self.groups and beyond > 0 and len(row) <= self.longest):
            return False
        if beyond % (len(self.groups) or 1):
            return False
        bounds = chain(self.values, cycle(self.groups))
        return all(low <= value <= high for value, (low, high) in zip(row, bounds, strict=False))


class RecordKinds(NamedTuple):
    """``bounds``: by field, those of whole numbers, or of each in a list. ``counted``: by field with a list,
    the field that has its length unless the list is empty; null means 1. ``rows``: by field with rows of
    whole numbers, what each of them is like.

    ``subject``: the field that names the part of the application that reports, such as a replica. A node may
    report about its own parts only, and only what ``rules`` allow. ``words``: by reason, what refused records
    did.
    """

    events: tuple[type[Event], ...]
    bounds: Mapping[str, tuple[int, int]] = {}
    counted: Mapping[str, str] = {}
    subject: str = ""
    rules: tuple[Rule, ...] = ()
    words: Mapping[str, str] = {}
    rows: Mapping[str, RowRule] = {}


NO_RECORDS = RecordKinds(())


def tag_of(kind: type[Event]) -> str:
    return str(kind.__struct_config__.tag)


def tags_of(*kinds: type[Any]) -> tuple[str, ...]:
    return tuple(map(tag_of, kinds))
