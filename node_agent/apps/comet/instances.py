"""Instances that a node knows, and which interval completes a match of some of them."""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from msgspec import Struct, field

from node_agent.apps.comet.conjuncts import Conjunct
from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.messages import Bounds


class Instances(Struct):
    """By event, in order of their starts."""

    by_event: dict[str, list[Instance]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_event.values()))

    def add(self, instance: Instance) -> bool:
        """Returns whether it is new."""
        listed = self.by_event.setdefault(instance.event, [])
        place = bisect_left(listed, instance)
        if place < len(listed) and listed[place] == instance:
            return False
        listed.insert(place, instance)
        return True

    def within(self, event: str, low: float, high: float) -> list[Instance]:
        """Those that start no earlier than ``low`` and no later than ``high``."""
        listed = self.by_event.get(event, [])
        first = bisect_left(listed, low, key=_start)
        return listed[first : bisect_right(listed, high, key=_start)]

    def near(self, conjunct: Conjunct, anchor: Instance, events: Iterable[str]) -> dict[str, list[Instance]]:
        """Those that can be in one match with ``anchor``, by event, and a few more."""
        found = {}
        for name in events:
            if name != anchor.event:
                window = conjunct.windows[anchor.event, name]
                found[name] = self.within(name, anchor.end - window, anchor.start + window)
        return found

    def forget(self, before: float) -> None:
        """Removes instances that start earlier."""
        for listed in self.by_event.values():
            del listed[: bisect_left(listed, before, key=_start)]

    def drop_oldest(self) -> Instance:
        """Removes the instance that starts first. There must be one."""
        event = min((listed[0], event) for event, listed in self.by_event.items() if listed)[1]
        return self.by_event[event].pop(0)


def _start(instance: Instance) -> float:
    return instance.start


def bounds_for(conjunct: Conjunct, match: Iterable[Instance], event: str) -> tuple[float, float]:
    """The earliest start and latest end of instances of ``event`` that fit to all of a match."""
    low, high = -math.inf, math.inf
    for each in match:
        window = conjunct.windows[each.event, event]
        low, high = max(low, each.end - window), min(high, each.start + window)
        if (each.event, event) in conjunct.before:
            low = max(low, each.end)
        if (event, each.event) in conjunct.before:
            high = min(high, each.start)
    return low, high


def covers(wide: Bounds, narrow: Bounds) -> bool:
    return all(wide[name][0] <= low and wide[name][1] >= high for name, (low, high) in narrow.items())


def is_within(match: Iterable[Instance], bounds: Bounds) -> bool:
    return all(bounds[each.event][0] <= each.start and each.end <= bounds[each.event][1] for each in match)


class AskedFor(Struct):
    """Requests in order of where the interval of one event begins. ``longest``: of these intervals."""

    key: str
    asked: list[tuple[float, Bounds]] = field(default_factory=list)
    longest: float = 0.0

    def add(self, bounds: Bounds) -> None:
        low, high = bounds[self.key]
        insort(self.asked, (low, bounds), key=_first)
        self.longest = max(self.longest, high - low)

    def wants(self, match: tuple[Instance, ...]) -> bool:
        start = next(each.start for each in match if each.event == self.key)
        return any(is_within(match, bounds) for bounds in self._around(start))

    def covered(self, bounds: Bounds) -> bool:
        """Whether an earlier request asks for all of it."""
        return any(covers(other, bounds) for other in self._around(bounds[self.key][0]))

    def _around(self, moment: float) -> Iterable[Bounds]:
        first = bisect_left(self.asked, moment - self.longest, key=_first)
        last = bisect_right(self.asked, moment, key=_first)
        return (bounds for _, bounds in self.asked[first:last])

    def forget(self, before: float) -> None:
        """Removes requests of which every interval ends earlier."""
        self.asked = [
            (low, bounds) for low, bounds in self.asked if any(high >= before for _, high in bounds.values())
        ]


def _first(pair: tuple[float, Bounds]) -> float:
    return pair[0]
