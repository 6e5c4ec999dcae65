"""Patterns as values: ``and``, ``seq``, ``or`` and negation over primitive events (paper, section II-B)."""

from collections.abc import Iterator

from msgspec import Struct


class Event(Struct, frozen=True, tag="event"):
    """Each instance of a primitive event."""

    name: str


class Not(Struct, frozen=True, tag="not"):
    """Absence of a pattern. It stands among the parts of an ``and`` or ``seq``."""

    part: "Pattern"


class And(Struct, frozen=True, tag="and"):
    """One instance of every part, all within ``window`` seconds."""

    parts: tuple["Pattern", ...]
    window: float


class Seq(Struct, frozen=True, tag="seq"):
    """As ``And``, and each part ends before the next one starts, or at that moment."""

    parts: tuple["Pattern", ...]
    window: float


class Or(Struct, frozen=True, tag="or"):
    """Each instance of any part."""

    parts: tuple["Pattern", ...]


Pattern = Event | Not | And | Seq | Or


def event_names(pattern: Pattern) -> Iterator[str]:
    """Yields names from left to right, repeated where the pattern repeats them, negated ones too."""
    match pattern:
        case Event(name):
            yield name
        case Not(part):
            yield from event_names(part)
        case _:
            for each in pattern.parts:
                yield from event_names(each)


def positive_parts(pattern: And | Seq) -> tuple[Pattern, ...]:
    return tuple(part for part in pattern.parts if not isinstance(part, Not))


def printed(pattern: Pattern) -> str:
    """Returns text that ``grammar.parse`` reads back to the same pattern."""
    match pattern:
        case Event(name):
            return name
        case Not(part):
            return f"!{printed(part)}"
        case Or(parts):
            return f"or({', '.join(map(printed, parts))})"
        case And(parts, window):
            return f"and({', '.join(map(printed, parts))}; {window!r}s)"
        case Seq(parts, window):
            return f"seq({', '.join(map(printed, parts))}; {window!r}s)"
