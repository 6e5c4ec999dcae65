"""The contact plan: for every link the times at which it is up, and what it carries then.

Times are seconds since movement began, in whole ticks of 0.1 s: links change at ticks in virtual time and in
namespaces alike, so a plan says exactly what happens in both.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

TICKS_PER_S = 10
TICK_S = 1 / TICKS_PER_S
FOREVER = 1e9
"""Seconds: when a contact ends that does not end. A number, because JSON has no infinity."""


class Contact(NamedTuple):
    """The link is up from ``up`` until just before ``down`` (seconds)."""

    up: float
    down: float

    @property
    def length(self) -> float:
        return self.down - self.up


@dataclass(frozen=True)
class ContactLink:
    """A link between two nodes. ``rate`` in bit/s, ``latency`` in seconds.

    ``edp`` and ``eap`` are the expected disconnection period and the expected active period in seconds:
    stated where the schedule follows a rule, measured where it comes from a list.
    """

    a: str
    b: str
    contacts: tuple[Contact, ...]
    """In order of time, disjoint, with gaps between them."""
    edp: float
    eap: float
    rate: float
    latency: float = 0.0
    cost: float | None = None
    """Cost factor: of sending one packet. None: not given."""
    one_way: bool = False
    """Only ``a`` can send."""

    def __post_init__(self) -> None:
        if any(contact.down <= contact.up for contact in self.contacts):
            raise ValueError(f"{self.a} – {self.b}: a contact ends before it begins")
        if any(later.up <= earlier.down for earlier, later in pairwise(self.contacts)):
            raise ValueError(f"{self.a} – {self.b}: contacts must be in order, with gaps between them")

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        return ((self.a, self.b),) if self.one_way else ((self.a, self.b), (self.b, self.a))

    def current(self, t: float) -> Contact | None:
        """Returns the contact that is under way at ``t``."""
        index = bisect_right(self._ups, t) - 1
        return self.contacts[index] if index >= 0 and t < self.contacts[index].down else None

    def is_up(self, t: float) -> bool:
        return self.current(t) is not None

    def next_up(self, t: float) -> float | None:
        """Returns the first moment from ``t`` on at which the link is up; None if there is none."""
        if self.is_up(t):
            return t
        index = bisect_right(self._ups, t)
        return self.contacts[index].up if index < len(self.contacts) else None

    def up_time(self, until: float) -> float:
        """Returns for how many seconds of [0, ``until``) it is up."""
        begun = self.contacts[: bisect_left(self._ups, until)]
        return sum(min(each.down, until) - each.up for each in begun)

    def longest_down(self, until: float) -> float:
        """Returns the longest time without a contact within [0, ``until``)."""
        ends = [0.0, *(min(each.down, until) for each in self.contacts)]
        starts = [*(min(each.up, until) for each in self.contacts), until]
        return max(start - end for end, start in zip(ends, starts, strict=True))

    @cached_property
    def _ups(self) -> list[float]:
        return [contact.up for contact in self.contacts]


@dataclass(frozen=True)
class ContactPlan:
    """All links between ``nodes``. It holds from 0 to ``until`` seconds; no contact begins after that."""

    nodes: tuple[str, ...]
    links: tuple[ContactLink, ...]
    until: float

    def __post_init__(self) -> None:
        if len(self._by_pair) < sum(len(link.directions) for link in self.links):
            raise ValueError("two links go from one node to the same other")

    def link(self, sender: str, receiver: str) -> ContactLink | None:
        """Returns the link over which ``sender`` can reach ``receiver`` directly, now or at another time."""
        return self._by_pair.get((sender, receiver))

    def up_at(self, t: float) -> list[ContactLink]:
        """Returns the links that are up at ``t``."""
        return [link for link in self.links if link.is_up(t)]

    def step(self, t: float) -> int:
        """Returns a number that is the same for two moments if no link changes between them."""
        return bisect_right(self.change_times, t)

    @cached_property
    def change_times(self) -> list[float]:
        """Every moment at which a link goes up or down, in order."""
        return sorted({t for link in self.links for contact in link.contacts for t in contact})

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str], ContactLink]:
        return {pair: link for link in self.links for pair in link.directions}

    @property
    def contact_count(self) -> int:
        return sum(len(link.contacts) for link in self.links)


def on_ticks(contacts: Iterable[tuple[float, float]]) -> tuple[Contact, ...]:
    """Rounds contacts to ticks, orders them, and joins those that touch or overlap then.

    A contact that is shorter than a tick takes one. What lies before 0 is left out.
    """
    joined: list[Contact] = []
    for up, down in sorted(contacts):
        if down < 0 or up < down <= 0:
            continue
        begin = max(0, round(up * TICKS_PER_S))
        end = max(begin + 1, round(down * TICKS_PER_S))
        contact = Contact(begin / TICKS_PER_S, end / TICKS_PER_S)
        if joined and contact.up <= joined[-1].down:
            contact = Contact(joined[-1].up, max(joined.pop().down, contact.down))
        joined.append(contact)
    return tuple(joined)


class Periods(NamedTuple):
    """Mean lengths in seconds of the times a link is down and up."""

    edp: float
    eap: float


def measured(contacts: Sequence[Contact], until: float) -> Periods:
    """Returns the mean lengths of the contacts that begin before ``until``, and of the gaps within [0,
    ``until``), those at the ends included.
    """
    begun = [each for each in contacts if each.up < until]
    ups = [each.length for each in begun]
    edges = [0.0, *(edge for each in begun for edge in each), until]
    gaps = [gap for down, up in zip(edges[::2], edges[1::2], strict=True) if (gap := up - down) > 0]
    return Periods(sum(gaps) / len(gaps) if gaps else 0.0, sum(ups) / len(ups) if ups else 0.0)
