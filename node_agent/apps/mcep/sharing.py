"""Results of a graph that runs over one region for several readers, now or later.

Strong completeness (thesis, definition 10 and P3): queries with the same region read one graph, so they get
the same results where their times overlap. A graph of a predicted interest has no reader before the switch.
Results are kept for as long as a new reader can ask for; a graph runs on for a while after its last reader
left.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, field

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.model import Event, Mark, McepError, just_before

Who = tuple[str, int]
"""A query, and the number of what it needs a graph for."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Wants results from ``since`` on and before ``until``. One that waits for a switch wants none yet."""

    since: float
    until: float = float("inf")


@dataclass(slots=True)
class RegionResults:
    """One graph over one region. ``history``: how many seconds before its start a reader may ask for."""

    region: Region
    begun: float
    history: float
    complete_to: float = float("-inf")
    """All results before this time are there."""
    readers: dict[Who, Reader] = field(default_factory=dict)
    left: float | None = None
    """When the last reader leaves; None while somebody reads on or may read it later."""
    _kept: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> list[Who]:
        """Takes a result, in order. Returns who reads it."""
        self._kept.append(event)
        if len(self._kept) > 64 and self._kept[len(self._kept) // 2].t < event.t - self.history:
            del self._kept[: bisect_left(self._kept, just_before(event.t - self.history), key=_key)]
        return [name for name, reader in self.readers.items() if reader.since <= event.t < reader.until]

    def progress(self, complete_to: float) -> list[Who]:
        """All results before this time were added. Returns the readers that have all they want."""
        self.complete_to = max(self.complete_to, complete_to)
        done = [name for name, reader in self.readers.items() if reader.until <= self.complete_to]
        for name in done:
            del self.readers[name]
        return done

    def reserve(self, name: Who) -> None:
        """Somebody may read it later: it runs on until it is released."""
        self.readers[name] = Reader(math.inf)
        self.left = None

    def release(self, name: Who) -> None:
        if self.readers.pop(name, None) is not None:
            self._note_left(self.begun)

    def _note_left(self, until: float) -> None:
        ends = [each.until for each in self.readers.values()]
        if math.inf not in ends:
            self.left = max([until, *ends])

    def has_history(self, arrived: float) -> bool:
        """Whether all results from before its beginning are there, as far as events have arrived."""
        return self.complete_to >= min(self.begun, arrived)

    def join(self, name: Who, start: float, history: float) -> list[Event]:
        """A reader whose epoch begins at ``start``. Returns the results that are there already."""
        if history > self.history or start < self.begun:
            raise McepError(
                f"{name[0]} wants {history:g} s of history from {start:g} s on, but this graph began at "
                f"{self.begun:g} s with {self.history:g} s"
            )
        self.readers[name] = Reader(start - history)
        self.left = None
        return self._kept[bisect_left(self._kept, just_before(start - history), key=_key) :]

    def leave(self, name: Who, until: float) -> list[Who]:
        """A reader's epoch ends; results before ``until`` that are still to come are for it. Returns the
        readers that have all they want."""
        self.readers[name] = Reader(self.readers[name].since, until)
        self._note_left(until)
        return self.progress(self.complete_to)


class SharedGraphs:
    """The graphs of queries that ask for the same, by region.

    ``history``: the most that one of them may ask for, fixed for all. ``linger``: for how long a graph runs
    on without readers; for strong completeness longer than the history and the operators' windows, so a
    query that comes back finds it. None: it stops when its last reader left.
    """

    def __init__(self, history: float, additional: float, linger: float | None) -> None:
        if linger is not None and not linger > history + additional:
            raise McepError(
                f"a shared graph must run on for more than {history + additional:g} s after its last reader "
                f"left, its history and its operators' windows; not {linger:g} s"
            )
        self._history, self._linger = history, linger
        self.running: dict[Region, RegionResults] = {}

    def enter(self, region: Region, start: float) -> tuple[RegionResults, bool]:
        """The graph of a region, and whether it must be started."""
        found = self.running.get(region)
        if found is not None:
            return found, False
        made = self.running[region] = RegionResults(region, start, self._history)
        return made, True

    def expire(self, now: float) -> list[Region]:
        """Regions whose graphs get no new readers and are to end, at the time of ``left`` or later."""
        gone = [
            region
            for region, graph in self.running.items()
            if graph.left is not None and (self._linger is None or now - graph.left > self._linger)
        ]
        for region in gone:
            del self.running[region]
        return gone


def _key(event: Event) -> Mark:
    return event[:3]
