"""What a line of telemetry may hold: the fields of every kind, their types and bounds, each said once.

Python's readers decode ``Record``; Spark's columns (``orchestrator.analytics.belief``) are checked against
the same ``BOUNDS``, ``NEEDED`` and ``KINDS_WITH``. A line that breaks them is corrupt, whoever wrote it.
"""

from collections.abc import Callable
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from node_agent.model.checked import Checked
from node_agent.model.telemetry import KINDS, MOST_TUPLES, Envelope, Event

LONGEST_LINE = 1024 * 1024
"""Bytes. An agent's longest lines list the sizes and births of ``MOST_TUPLES`` tuples: below 150 kB."""

MOST_BOOTS = 999_999
_TIME_NS = (0, 2**62)
_COUNTER = (0, 2**53)
_SIZE = (0, 2**50)
_LONG = (-(2**63), 2**63 - 1)

BOUNDS: dict[str, tuple[int, int]] = {
    "boot": (1, MOST_BOOTS),
    "seq": _COUNTER,
    "t_ns": _TIME_NS,
    "born_ns": _TIME_NS,
    "taken_ns": _TIME_NS,
    "took_ns": _TIME_NS,
    "births": (-(2**61), 2**61),
    "latency_ns": (-(2**61), 2**61),
    "tau": (0, 2**62),
    "tuples": (1, MOST_TUPLES),
    "size": _SIZE,
    "sizes": _SIZE,
    "sent": _COUNTER,
    "sent_bytes": _COUNTER,
    "forwarded": _COUNTER,
    "forwarded_bytes": _COUNTER,
    "refused": _COUNTER,
    "count": _COUNTER,
}
"""Of whole numbers, or of each in a list; all others have 64 bits. Sums and differences of two stay in 64."""

ENVELOPE = tuple(field.name for field in msgspec.structs.fields(Envelope) if field.required)
"""What every record has."""


def _needed(kind: type[Event]) -> tuple[str, ...]:
    """The fields that every record of ``kind`` has."""
    hints = get_type_hints(kind)
    fields = msgspec.structs.fields(kind)
    return tuple(f.name for f in fields if f.required and type(None) not in get_args(hints[f.name]))


def tag_of(kind: type[Event]) -> str:
    return str(kind.__struct_config__.tag)


NEEDED: dict[str, tuple[str, ...]] = {tag_of(kind): _needed(kind) for kind in KINDS}
"""By kind. Of a kind that is not known here, nothing is asked; it enters no table."""

KINDS_WITH: dict[str, tuple[str, ...]] = {}
"""By field, the kinds that have it. In a record of another known kind it must be null."""
for _kind in KINDS:
    for _name in _kind.__struct_fields__:
        KINDS_WITH[_name] = (*KINDS_WITH.get(_name, ()), tag_of(_kind))


def _bounded(name: str, kind: Any) -> Any:
    low, high = BOUNDS.get(name, _LONG)
    whole = Annotated[int, Meta(ge=low, le=high)]
    if kind is int:
        return whole
    if get_origin(kind) is tuple and get_args(kind)[0] is int:
        return tuple[whole, ...]
    return kind


def _fields() -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    hints = get_type_hints(Envelope)
    envelope: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (field.name, _bounded(field.name, hints[field.name]), field.default)
        for field in msgspec.structs.fields(Envelope)
    ]
    own: dict[str, Any] = {}
    for kind in KINDS:
        hints = get_type_hints(kind)
        for name in kind.__struct_fields__:
            own[name] = Union[_bounded(name, _without_none(hints[name])), None]  # noqa: UP007
    return [*envelope, *((name, kind, None) for name, kind in own.items())]


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (rest,) = (each for each in get_args(kind) if each is not type(None))
    return rest


Record: Any = msgspec.defstruct("Record", _fields(), frozen=True, kw_only=True)
"""A record of any kind; the fields of other kinds are None."""

_checked = Checked(Record, LONGEST_LINE)
_of_needed: dict[str, Callable[[Any], Any]] = {
    kind: attrgetter("kind", *names) for kind, names in NEEDED.items()
}
_foreign = {kind: [name for name, having in KINDS_WITH.items() if kind not in having] for kind in NEEDED}
_of_foreign: dict[str, Callable[[Any], Any]] = {kind: attrgetter(*names) for kind, names in _foreign.items()}
_nothing = {kind: (None,) * len(names) for kind, names in _foreign.items()}


def decode(line: bytes) -> Any:
    """The ``Record`` in ``line``. Raises Refused."""
    return _checked.decode(line)


def flaw(record: Any) -> str:
    """Why the fields of ``record`` do not fit together; empty if they do."""
    kind = record.kind
    of_kind = _of_needed.get(kind)
    if of_kind is not None:
        if None in of_kind(record):
            return "incomplete"
        if _of_foreign[kind](record) != _nothing[kind]:
            return "field"
    if record.sizes or record.births:
        many = record.tuples or 1
        if any(each and len(each) != many for each in (record.sizes, record.births)):
            return "extent"
    return ""
