"""When the events of a node occur: the same after a restart as without one."""

import math
import random
from collections.abc import Iterator

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.model import OwnEvent

GRID = 512
"""Parts of a second, each a whole number of nanoseconds."""


def opening(now: float) -> float:
    """Returns the moment that times of events count from: ``now``, rounded up.

    Sums of it with whole and half seconds are exact. So two instances that are as far apart as a window is
    long are inside it, for nodes and for those who read their records.
    """
    return math.ceil(now * GRID) / GRID


def occurrences(event: OwnEvent, opened: float) -> Iterator[Instance]:
    """Yields instances in order of their ends. ``opened``: when sources opened, by the node's clock."""
    if event.times is not None:
        for number, (start, end) in enumerate(event.times):
            yield Instance(opened + start, opened + end, event.name, number)
        return
    rng = random.Random(f"{event.seed}/{event.name}")
    at, number = event.begin, 0
    while (at := at + rng.expovariate(event.rate)) <= (float("inf") if event.end is None else event.end):
        yield Instance(opened + at, opened + at + event.length, event.name, number)
        number += 1


class Sources:
    """The events of one node, in order. ``told``: by event, how many are known already."""

    def __init__(self, events: tuple[OwnEvent, ...], opened: float, told: dict[str, int]) -> None:
        self._coming: list[tuple[Instance, Iterator[Instance]]] = []
        for event in events:
            instances = occurrences(event, opened)
            first = next((each for each in instances if each.number >= told.get(event.name, 0)), None)
            if first is not None:
                self._coming.append((first, instances))

    def next_end(self) -> float | None:
        return min((instance.end for instance, _ in self._coming), default=None)

    def due(self, now: float) -> Iterator[Instance]:
        """Yields what has ended by now, in order of the ends."""
        while (end := self.next_end()) is not None and end <= now:
            place = min(range(len(self._coming)), key=lambda at: self._coming[at][0].end)
            instance, rest = self._coming[place]
            following = next(rest, None)
            if following is None:
                del self._coming[place]
            else:
                self._coming[place] = (following, rest)
            yield instance
