"""Decodes data of another machine, another process or a file, within bounds.

Every parser of foreign bytes in Rove goes through here or names its own bounds. A value that is too large,
too deep, malformed or out of range raises ``Refused``, never anything else. If bytes carry an authentication
tag, check it first.

    >>> reports = Checked(Report, most_bytes=64_000)
    >>> reports.decode(line)
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

MOST_DEPTH = 32
"""Nesting of lists and maps in untyped values. Rove itself stays below 10."""
MOST_ITEMS = 1_000_000
"""All lists and maps within one such value."""

Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer that fits a 64-bit column of Parquet or Spark."""
Moment = Annotated[int, Meta(ge=0, le=2**62)]
"""Nanoseconds of some clock. The difference of two, and the sum with such a difference, is a ``Long``."""
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Whole = Annotated[int, Meta(ge=0, le=2**62)]
"""A count or a position. The sum of a few of them still fits 64 bits."""


class Refused(ValueError):
    """The bytes cannot be used. ``reason`` is one word for counting: size, depth, or malformed."""

    def __init__(self, reason: Literal["size", "depth", "malformed"], message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Checked(Generic[T]):
    """Decodes values of one type, as JSON or msgpack.

    ``lines``: a type that takes less time to decode and takes fewer values; many lines are tried with it
    first.
    """

    def __init__(
        self,
        kind: type[T] | Any,
        most_bytes: int,
        format: Literal["json", "msgpack"] = "json",
        most_depth: int = MOST_DEPTH,
        lines: Any = None,
    ) -> None:
        module: Any = msgspec.json if format == "json" else msgspec.msgpack
        self._decode = module.Decoder(kind).decode
        self._decode_lines = msgspec.json.Decoder(lines or kind).decode_lines if format == "json" else None
        self._format = format
        self._most_bytes = most_bytes
        self._most_depth = most_depth

    def decode(self, data: bytes) -> T:
        """Returns the value. Raises Refused."""
        if len(data) > self._most_bytes:
            raise Refused("size", f"{len(data)} bytes are more than {self._most_bytes}")
        try:
            value: T = self._decode(data)
        except RecursionError as error:
            raise Refused("depth", "it is nested too deeply") from error
        except (msgspec.DecodeError, ValueError, OverflowError) as error:
            raise Refused("malformed", f"it is not the {self._format} expected: {error}") from error
        check_depth(value, self._most_depth)
        return value

    def decode_lines(self, data: bytes) -> list[T] | None:
        """Returns the values of whole lines of JSON that hold one struct each, of at most ``most_bytes``
        together; None if a line has to be looked at by itself.

        It takes less than half of the time that ``decode`` does for all lines.
        """
        lines = data.count(b"\n")
        # So that no line is empty, none holds two values, and no value goes over several lines.
        if not data.startswith(b"{") or not data.endswith(b"}\n") or data.count(b"}\n{") != lines - 1:
            return None
        if self._decode_lines is None or len(data) > self._most_bytes:
            return None
        try:
            values: list[T] = self._decode_lines(data)
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
            return None
        return values if len(values) == lines else None


def check_depth(value: object, most_depth: int = MOST_DEPTH, most_items: int = MOST_ITEMS) -> None:
    """Raises Refused if lists and maps within ``value`` are nested deeper, or hold more, than the limits."""
    if not isinstance(value, (dict, list, tuple)):
        return  # a struct: its type bounds its depth
    level: list[object] = [value]
    seen = 0
    for _ in range(most_depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)  # type: ignore[attr-defined]
            if isinstance(inner, (dict, list, tuple))
        ]
        seen += len(level)
        if not level:
            return
        if seen > most_items:
            raise Refused("size", f"it holds more than {most_items} lists and maps")
    raise Refused("depth", f"it is nested more than {most_depth} deep")
