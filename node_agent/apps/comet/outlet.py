"""Where a stream begins: decides which instances are sent, each once."""

from bisect import bisect_left, bisect_right, insort

from msgspec import Struct, field

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.instances import AskedFor, is_within
from node_agent.apps.comet.messages import Bounds, Key, key_of

Match = tuple[Instance, ...]
MOST_SENT = 100_000
"""Instances of which an outlet remembers at least that it sent them: what is sent twice may be detected twice
if the place where it is matched has forgotten it, too."""


class Outlet(Struct):
    """Of a pushed stream: sends the instances of every match. Of a pulled one: keeps matches, and sends those
    that were asked for, before or after they occurred.

    ``key``: the event by whose times matches and requests are kept in order. ``sent``: with their starts.
    ``asks``: so many requests have come without a gap.
    """

    key: str
    pulled: bool
    asked: AskedFor
    matches: list[tuple[float, Match]] = field(default_factory=list)
    sent: dict[Key, float] = field(default_factory=dict)
    asks: int = 0

    def offer(self, match: Match) -> list[Instance]:
        """Takes a new match, and returns what is to be sent."""
        if self.pulled:
            start = next(each.start for each in match if each.event == self.key)
            insort(self.matches, (start, match), key=_first)
            if not self.asked.wants(match):
                return []
        return self._unsent(match)

    def ask(self, number: int, bounds: Bounds) -> list[Instance]:
        """Takes a request, and returns what is to be sent."""
        if number == self.asks + 1:
            self.asks = number
        self.asked.add(bounds)
        low, high = bounds[self.key]
        first = bisect_left(self.matches, low, key=_first)
        last = bisect_right(self.matches, high, key=_first)
        return [
            each
            for _, match in self.matches[first:last]
            if is_within(match, bounds)
            for each in self._unsent(match)
        ]

    def _unsent(self, match: Match) -> list[Instance]:
        new = [each for each in match if key_of(each) not in self.sent]
        self.sent.update({key_of(each): each.start for each in new})
        return new

    def forget(self, complete: float, unasked: float, unmatched: float) -> None:
        """Removes what is not needed any more.

        All matches that end before ``complete`` were offered; nothing that starts before ``unasked`` will be
        asked for; nothing that starts before ``unmatched`` will be part of a new match.
        """
        self.asked.forget(complete)
        if self.pulled:
            self.matches = [kept for kept in self.matches if all(each.start >= unasked for each in kept[1])]
        bound = min(unasked, unmatched) if self.pulled else unmatched
        self.sent = {key: start for key, start in self.sent.items() if start >= bound}

    def drop_oldest(self) -> Match:
        return self.matches.pop(0)[1]


def _first(pair: tuple[float, Match]) -> float:
    return pair[0]


def new_outlet(events: tuple[str, ...], pulled: bool) -> Outlet:
    key = min(events)
    return Outlet(key, pulled, AskedFor(key))
