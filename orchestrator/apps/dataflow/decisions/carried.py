"""What ways between replicas carried, as the receivers recorded it, in tenths of a second."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

SLOT_NS = 100_000_000
IDLE_S = 3.0
"""A way in use over which nothing arrives for so long carries nothing."""

Way = tuple[str, str]
"""The sending and the receiving replica."""


class Gap(NamedTuple):
    """A time in which a way carried nothing; ``had_input``: although its sender had input."""

    from_ns: int
    until_ns: int
    had_input: bool

    @property
    def seconds(self) -> float:
        return (self.until_ns - self.from_ns) / 1e9


class Carried:
    def __init__(self) -> None:
        self._arrived: dict[Way, list[int]] = {}
        self._inputs: dict[str, list[int]] = {}

    def arrived(self, sender: str, receiver: str, t_ns: int) -> None:
        _note(self._arrived.setdefault((sender, receiver), []), t_ns)
        self.came_in(receiver, t_ns)

    def came_in(self, replica: str, t_ns: int) -> None:
        """Notes that the replica had something to work on: a tuple that it received or emitted."""
        _note(self._inputs.setdefault(replica, []), t_ns)

    def longest_gap(
        self, sender: str, shares: Mapping[str, float], from_ns: int, until_ns: int
    ) -> Gap | None:
        """Returns the longest time between these two in which nothing arrived over any of the ways; one with
        input comes first. None if there is none of at least ``IDLE_S``.
        """
        arrivals = sorted({slot for to in shares for slot in self._between((sender, to), from_ns, until_ns)})
        ends = [from_ns, *(slot * SLOT_NS for slot in arrivals), until_ns]
        gaps = [self._gap(sender, *each) for each in pairwise(ends) if each[1] - each[0] >= IDLE_S * 1e9]
        return max(gaps, key=lambda gap: (gap.had_input, gap.seconds), default=None)

    def _gap(self, sender: str, from_ns: int, until_ns: int) -> Gap:
        inputs = self._inputs.get(sender, [])
        later = bisect_left(inputs, from_ns // SLOT_NS + 1)
        return Gap(from_ns, until_ns, bisect_right(inputs, until_ns // SLOT_NS) > later)

    def idle_before(self, sender: str, shares: Mapping[str, float], since_ns: int, at_ns: int) -> Gap | None:
        """Returns for how long before ``at_ns`` the ways, in use since ``since_ns``, carried nothing."""
        slots = [slot for to in shares for slot in self._between((sender, to), since_ns, at_ns)]
        last = max(since_ns, max(slots, default=0) * SLOT_NS)
        return self.longest_gap(sender, {}, last, at_ns)

    def _between(self, way: Way, from_ns: int, until_ns: int) -> list[int]:
        slots = self._arrived.get(way, [])
        return slots[bisect_left(slots, from_ns // SLOT_NS) : bisect_right(slots, until_ns // SLOT_NS)]


def _note(slots: list[int], t_ns: int) -> None:
    slot = t_ns // SLOT_NS
    if not slots or slot > slots[-1]:
        slots.append(slot)
    elif slot != slots[-1] and slots[bisect_left(slots, slot)] != slot:
        insort(slots, slot)
