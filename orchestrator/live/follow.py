"""Follows the files of a run's directory: reads only what is new, and merges it in the order of time.

A file that is behind the others holds them back until it has been read as far as they were: whether a run
is read at once or in small steps, its items come in the same order. A file that was read to its end holds
nothing back: while the run goes on, what a node writes late comes late.
"""

import time
from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import Any

from node_agent.model.host_load import FILE as HOST_FILE
from node_agent.model.host_load import LONGEST_LINE as LONGEST_SAMPLE
from orchestrator.live.facts import RunFacts
from orchestrator.live.run_clock import AT_END_NS, BEFORE_NS, RunClock
from orchestrator.live.sources import (
    DELIVERY,
    LINK,
    LONGEST_TRUTH,
    POSITION,
    Delivery,
    Events,
    HostLoad,
    Item,
    Link,
    Position,
    Records,
    SegmentsTail,
    Source,
    Truth,
)
from orchestrator.live.tail import PIECE, Allowance, Tail
from orchestrator.runs.run_directory import RunDirectory

LOOK_S = 1.0
"""How often directories are listed; in between only files that are known are read."""
MOST_BYTES = 4 * 1024 * 1024
OUT_OF_STEP_NS = 30 * 10**9
MIRROR = "live"
"""The folder of a run's temporary directory that what remote nodes record is copied to while they run."""


class RunFollower:
    """Yields what is new. ``poll`` never blocks for long: it reads at most ``most_bytes``, and a little."""

    def __init__(self, directory: RunDirectory, clock: RunClock) -> None:
        self._directory = directory
        self._clock = clock
        self._allowance = Allowance()
        self._events = Events(0, directory.events, self._allowance)
        self._sources: list[Source] = [self._events]
        self._turn = 0
        self._looked = -LOOK_S
        self.caught_up = False
        """Whether the last poll reached the end of every file."""

    def know(self, facts: RunFacts) -> None:
        """Begins to follow the files of the run's nodes and radio."""
        where = self._directory
        positions, links, deliveries = (
            self._tail([where.radio / f"{name}.jsonl"], LONGEST_TRUTH)
            for name in ("positions", "links", "deliveries")
        )
        sources: list[Source] = [
            Truth(1, positions, POSITION, Position),
            Truth(2, links, LINK, Link),
            Truth(3, deliveries, DELIVERY, Delivery),
            HostLoad(4, "", self._tail([where.path / HOST_FILE], LONGEST_SAMPLE)),
        ]
        for number, node in enumerate(facts.nodes):
            places = self._places(node)
            order = 5 + 2 * number
            segments = SegmentsTail([p / "segments" for p in places], where.path, self._allowance)
            sources.append(Records(order, node, segments, facts.writers.get(node)))
            if facts.traits.own_machines:
                load = self._tail([p / HOST_FILE for p in places], LONGEST_SAMPLE)
                sources.append(HostLoad(order + 1, node, load))
        self._sources += sources
        self._looked = -LOOK_S

    def _tail(self, places: list[Path], longest: int) -> Tail:
        return Tail(places, longest, self._directory.path, self._allowance)

    def _places(self, node: str) -> list[Path]:
        return [self._directory.nodes / node, self._directory.temporary / MIRROR / node]

    def poll(
        self, ready: Callable[[], bool], most_bytes: int = MOST_BYTES, in_step: bool = False
    ) -> list[Item]:
        """Returns what is new, in the order of time.

        ``ready``: asked once all files were begun; until it says yes, only events from before the nodes were
        up are returned. ``in_step``: holds back what is later than the latest record of a node that recorded
        something not long ago: a simulation writes its nodes' records in large pieces.
        """
        if time.monotonic() - self._looked >= LOOK_S:
            self.look()
        budget = _Budget(most_bytes)
        self._turn += 1
        turn = self._turn % len(self._sources)
        for source in self._sources:
            source.at_end = False  # it was, when it was read last
        for source in (*self._sources[turn:], *self._sources[:turn]):
            # Until the run has begun, events wait here, and ``ready`` looks for the next of them.
            if not source.items or (source is self._events and self._clock.zero_ns is None):
                budget.fill(source)
        found = self._events.pop_early(self._clock, BEFORE_NS)
        if not self._filled(budget) or not ready():
            return found
        found += self._merged(budget, self._in_step_ns() if in_step else AT_END_NS)
        return found

    def first_ns(self) -> dict[str, int]:
        """Returns the time of the next record of each node that has one."""
        keys = {s.node: s.first_ns(self._clock) for s in self._sources if isinstance(s, Records)}
        return {node: key for node, key in keys.items() if key is not None}

    def waiting_events(self) -> list[dict[str, Any]]:
        """Returns the events that were read and not yet returned."""
        return [event for _, event, _, _ in self._events.items]

    def look(self) -> None:
        """Looks for new files, and for files that were replaced."""
        self._looked = time.monotonic()
        for source in self._sources:
            source.look()

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _filled(self, budget: "_Budget") -> bool:
        """Whether every file that is not at its end has something to go on with."""
        begins = self._clock.zero_ns is None
        for source in self._sources:
            while not (source.items or source.at_end) or (begins and not source.has_begun):
                if budget.is_spent:
                    self.caught_up = False
                    return False
                budget.fill(source)
        return True

    def _in_step_ns(self) -> int:
        latest = [s.latest_ns for s in self._sources if isinstance(s, Records) and s.latest_ns >= 0]
        return min((each for each in latest if each > max(latest) - OUT_OF_STEP_NS), default=AT_END_NS)

    def _merged(self, budget: "_Budget", until_ns: int) -> list[Item]:
        clock = self._clock
        found: list[Item] = []
        heap = self._heap()
        while heap:
            key, order, source = heap[0]
            if key > until_ns:
                break
            found.append(source.pop(key))
            if clock.now_ns < key != AT_END_NS:
                clock.now_ns = key
            while not source.items and not source.at_end:
                if budget.is_spent:
                    self.caught_up = False
                    return found
                budget.fill(source)
            following = source.key_ns(clock)
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (following, order, source))
        self.caught_up = True
        return found

    def _heap(self) -> list[tuple[int, int, Source]]:
        keys = ((source.key_ns(self._clock), source) for source in self._sources)
        heap = [(key, source.order, source) for key, source in keys if key is not None]
        heapify(heap)
        return heap


class _Budget:
    def __init__(self, most: int) -> None:
        self._left = most

    @property
    def is_spent(self) -> bool:
        return self._left <= 0

    def fill(self, source: Source) -> None:
        if self._left > 0:
            self._left -= source.fill(min(PIECE, max(self._left, 4096)))
