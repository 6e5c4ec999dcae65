"""Counts what a node refused, and from which sources: bounded, however many strangers there are."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

MOST_SOURCES = 32
OTHERS = "others"
"""Stands for all strangers beyond the first ``MOST_SOURCES``: an attacker can invent addresses."""


class Refusal(Struct, frozen=True):
    """``source`` sent ``what`` (``connection``, ``datagram``, ``olsr``, …); it was refused for ``reason``."""

    what: str
    source: str
    reason: str
    count: int


class Refusals:
    """Counts since the start, by what was refused, its source and the reason.

    ``what`` and ``reason`` are words of our own code, never the peer's; ``source`` is an address or a node.
    """

    def __init__(self, most_sources: int = MOST_SOURCES) -> None:
        self._most = most_sources
        self._sources: set[str] = set()
        self._members: frozenset[str] = frozenset()
        self._counts: dict[tuple[str, str, str], int] = {}

    def set_members(self, members: Iterable[str]) -> None:
        """Sets the nodes and addresses of the run, which are counted one by one however many strangers there
        are.
        """
        self._members = frozenset(members)

    def add(self, what: str, source: str, reason: str, count: int = 1) -> None:
        if source not in self._sources and source not in self._members:
            if len(self._sources) < self._most:
                self._sources.add(source)
            else:
                source = OTHERS
        key = what, source, reason
        self._counts[key] = self._counts.get(key, 0) + count

    def __iter__(self) -> Iterator[Refusal]:
        return (Refusal(*key, count) for key, count in self._counts.items())

    @property
    def total(self) -> int:
        return sum(self._counts.values())
