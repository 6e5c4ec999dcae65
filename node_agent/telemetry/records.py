"""What a line of telemetry may hold: the fields of every kind, their types and bounds, each defined once.

Every reader decodes a ``Record`` and asks for its ``flaw``: agents, collection, the analysis
(``orchestrator.analytics.intake``). A line that breaks the rules is corrupt, whichever node wrote it. Of many
lines, good ones are decoded as records of their kind alone, which takes a fraction of the time.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import attrgetter, or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from node_agent.extensions import ExtensionError
from node_agent.model.checked import Checked
from node_agent.model.telemetry import AGENT_KINDS, Envelope, Event
from node_agent.telemetry.kinds import COUNTER, TIME_NS, RecordKinds, RowRule, Rule, tag_of

LONGEST_LINE = 1024 * 1024
"""Bytes. An agent's longest lines list the sizes and births of 4096 tuples: below 150 kB."""

MOST_BOOTS = 999_999
_LONG = (-(2**63), 2**63 - 1)

AGENT = ""
"""The name under which the agent's own records are found."""
AGENT_RECORDS = RecordKinds(
    AGENT_KINDS,
    {
        "boot": (1, MOST_BOOTS),
        "seq": COUNTER,
        "t_ns": TIME_NS,
        "sent": COUNTER,
        "sent_bytes": COUNTER,
        "forwarded": COUNTER,
        "forwarded_bytes": COUNTER,
        "count": COUNTER,
    },
    words={
        "run": "name another run",
        "node": "name another node",
        "app": "name another application",
    },
)
Getter = Callable[[Any], Any]

ENVELOPE = tuple(field.name for field in msgspec.structs.fields(Envelope) if field.required)
"""The fields that every record has."""


class RecordFormat:
    """All records that the agent and some kinds of applications write.

    ``bounds``: of whole numbers, or of each in a list; others may have 64 bits. Sums and differences of two
    fit 64 bits. ``needed``: by kind of record, the fields that each one has; other kinds need none.
    ``kinds_with``: by field, the kinds that have it; in a record of another known kind it must be null.
    ``counted``, ``rows``, ``rules`` and ``words``: see ``RecordKinds``. ``owners``: by kind of record, the
    kind of application that writes it, or ``AGENT``.
    """

    def __init__(self, apps: Mapping[str, RecordKinds]) -> None:
        """``apps``: by kind of application. Raises ExtensionError if two of them contradict each other."""
        self.by_app: dict[str, RecordKinds] = {AGENT: AGENT_RECORDS, **apps}
        self.bounds: dict[str, tuple[int, int]] = {}
        self.needed: dict[str, tuple[str, ...]] = {}
        self.kinds_with: dict[str, tuple[str, ...]] = {}
        self.counted: dict[str, str] = {}
        self.rows: dict[str, RowRule] = {}
        self.owners: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.rules: dict[str, tuple[Rule, ...]] = {}
        self.events: tuple[type[Event], ...] = ()
        for app, records in self.by_app.items():
            self._add(app, records)
        self.checked = Checked[Any](
            msgspec.defstruct(
                "Record", self._fields(), namespace={"is_exact": False}, frozen=True, kw_only=True
            ),
            LONGEST_LINE,
            lines=reduce(or_, map(self._exact, self.events)),
        )
        own = {
            kind: [name for name, having in self.kinds_with.items() if kind in having] for kind in self.needed
        }
        self._needed = {kind: _getter("kind", *names) for kind, names in self.needed.items()}
        self._own = {kind: _getter(*names) for kind, names in own.items()}
        self._others = {kind: len(self.kinds_with) - len(names) for kind, names in own.items()}
        self._rows = {
            kind: [(name, rule) for name, rule in self.rows.items() if kind in self.kinds_with.get(name, ())]
            for kind in self.needed
        }
        self._extents = {kind: self._extents_in(names) for kind, names in own.items()}
        self._any_extents = self._extents_in(self.counted)

    def decode(self, line: bytes) -> Any:
        """Returns the record in ``line``: it has the fields of all kinds, those of other kinds are None.

        Raises Refused.
        """
        return self.checked.decode(line)

    def flaw(self, record: Any) -> str:
        """Returns why the fields of ``record`` do not fit together; empty if they do."""
        kind = record.kind
        needed = None if record.is_exact else self._needed.get(kind)
        if needed is not None:
            if None in needed(record):
                return "incomplete"
            # Only fields of other kinds and own ones that may be null are: counting them takes less time
            # than looking at each.
            null = msgspec.structs.astuple(record).count(None)
            if null != self._others[kind] + self._own[kind](record).count(None):
                return "field"
        for items, count in self._extents.get(kind, self._any_extents):
            each = items(record)
            if each and len(each) != (count(record) or 1):
                return "extent"
        for name, rule in self._rows.get(kind, ()):
            if not all(map(rule.allows, getattr(record, name) or ())):
                return "row"
        return ""

    def _add(self, app: str, records: RecordKinds) -> None:
        for kind in records.events:
            tag = tag_of(kind)
            if tag in self.owners:
                raise ExtensionError(f"{self.owners[tag] or 'agent'} and {app} both record {tag!r}")
            self.owners[tag] = app
            self.needed[tag] = _needed(kind)
            for name in kind.__struct_fields__:
                self.kinds_with[name] = (*self.kinds_with.get(name, ()), tag)
        self.events += records.events
        for name, bounds in records.bounds.items():
            if self.bounds.setdefault(name, bounds) != bounds:
                raise ExtensionError(f"the application {app!r} has other bounds for {name!r} than others")
        for name, row in records.rows.items():
            if self.rows.setdefault(name, row) != row:
                raise ExtensionError(f"the application {app!r} has other rows in {name!r} than others")
        self.counted |= records.counted
        self.words = {**records.words, **self.words}
        for rule in records.rules:
            for tag in rule.kinds:
                self.rules[tag] = (*self.rules.get(tag, ()), rule)

    def _exact(self, event: type[Event]) -> Any:
        """Returns a struct for good records of one kind. It has no room for fields of other kinds: they are
        null for whoever asks.
        """
        tag, needed = tag_of(event), self.needed[tag_of(event)]
        fields = [each for each in self._envelope() if each[0] != "kind"]
        for name, hint in get_type_hints(event).items():
            kind = self._bounded(name, _without_none(hint))
            fields.append((name, kind, msgspec.NODEFAULT) if name in needed else (name, kind | None, None))
        names = {name for name, _, _ in fields}
        others = {name: None for name in self.kinds_with if name not in names}
        return msgspec.defstruct(
            f"Record_{tag}",
            fields,
            namespace={**others, "kind": tag, "is_exact": True},
            tag_field="kind",
            tag=tag,
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=True,
            gc=False,
        )

    def _extents_in(self, fields: Iterable[str]) -> list[tuple[Getter, Getter]]:
        """Returns how to get a list and what says its length, for those of ``fields`` that are such lists."""
        return [(attrgetter(name), attrgetter(self.counted[name])) for name in fields if name in self.counted]

    def _envelope(self) -> list[tuple[str, Any, Any]]:
        hints = get_type_hints(Envelope)
        return [
            (field.name, self._bounded(field.name, hints[field.name]), field.default)
            for field in msgspec.structs.fields(Envelope)
        ]

    def _fields(self) -> list[tuple[str, Any, Any]]:
        own: dict[str, Any] = {}
        for event in self.events:
            hints = get_type_hints(event)
            for name in event.__struct_fields__:
                kind = _without_none(hints[name])
                where = f"the field {name!r} of {tag_of(event)!r}"
                if name in Envelope.__struct_fields__:
                    raise ExtensionError(f"{where} has the name of a field that every record has")
                if own.setdefault(name, kind) != kind:
                    raise ExtensionError(f"{where} has another type in other records")
        every = [(name, self._bounded(name, kind) | None, None) for name, kind in own.items()]
        return [*self._envelope(), *every]

    def _bounded(self, name: str, kind: Any) -> Any:
        low, high = self.bounds.get(name, _LONG)
        whole = Annotated[int, Meta(ge=low, le=high)]
        if kind is int:
            return whole
        if get_origin(kind) is tuple and get_args(kind)[0] is int:
            return tuple[whole, ...]
        return kind


def _getter(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function that gets all of the fields as one tuple."""
    match names:
        case ():
            return lambda record: ()
        case (name,):
            return lambda record: (getattr(record, name),)
    return attrgetter(*names)


def _needed(kind: type[Event]) -> tuple[str, ...]:
    """Returns the fields that every record of ``kind`` has."""
    hints = get_type_hints(kind)
    fields = msgspec.structs.fields(kind)
    return tuple(f.name for f in fields if f.required and type(None) not in get_args(hints[f.name]))


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (rest,) = (each for each in get_args(kind) if each is not type(None))
    return rest


AGENT_FORMAT = RecordFormat({})
"""For readers that do not check what applications record."""
