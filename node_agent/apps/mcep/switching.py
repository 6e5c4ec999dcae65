"""Moves a query's interest with its focal object (thesis, Alg. 3.3): the reconfigurator on the object's
broker.

A switch has two phases. First all range queries hold and say how far they are, so that the new epoch begins
where none of them has been yet; then they all get the same marker. With best effort there is no first
phase. While a switch waits for a server that does not answer, the old epoch stalls, but nothing wrong is
delivered.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.geometry import Circle, Point, Region
from node_agent.apps.mcep.interest import (
    Always,
    Condition,
    CountEvents,
    Switched,
    check_condition,
    must_switch,
)
from node_agent.apps.mcep.model import McepError, Query


class Hold(NamedTuple):
    """To a server: stop the range queries, and answer with ``Held``."""

    epoch: int


class Held(NamedTuple):
    """From a server: the earliest start of the next epoch that its range queries permit."""

    epoch: int
    position: float


class Switch(NamedTuple):
    """To a server: the epoch that begins."""

    marker: Marker


Order = Hold | Switch
Plan = Callable[[Switched | None, Region, float, int], tuple[Mapping[str, float], frozenset[str]]]
"""Points and touched sources of a switch from the last interest to a region at a time, for an epoch."""


def basic_plan(query: Query) -> Plan:
    """All sources are sent anew from their basic points (Lemma 1)."""
    sources = frozenset(source.name for source in query.graph.sources)

    def plan(
        last: Switched | None, region: Region, start: float, epoch: int
    ) -> tuple[Mapping[str, float], frozenset[str]]:
        return query.graph.points(start, query.history), sources

    return plan


NOWHERE = Circle(0.0, 0.0, 1e-9)
"""Stands for the region of a query that has ended."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A switch that waits for servers."""

    epoch: int
    place: Point | None
    t: float
    region: Region | None


def _no_events(regions: Iterable[Region], since: float, before: float) -> int:
    return 0


class Reconfigurator:
    """``count``: for ``QualityAware`` conditions. ``plan``: how far back streams begin."""

    def __init__(
        self,
        query: Query,
        servers: Iterable[str],
        condition: Condition | None = None,
        count: CountEvents = _no_events,
        plan: Plan | None = None,
    ) -> None:
        self.servers = tuple(servers)
        if not self.servers:
            raise McepError(f"query {query.name}: no server covers its area; name at least one")
        self._query, self._condition = query, condition or Always()
        check_condition(self._condition)
        self._count, self._plan = count, plan or basic_plan(query)
        self.last: Switched | None = None
        self.epoch = 0
        self.markers: list[Marker] = []
        self._pending: Pending | None = None
        self._positions: dict[str, float] = {}
        self._latest: tuple[Point | None, float] | None = None
        """A place that came while a switch was under way."""

    def located(self, place: Point, t: float) -> list[tuple[str, Order]]:
        """The focal object is at a place. Returns what to send to which server."""
        if self._pending is not None:
            self._latest = (place, t)
            return []
        if self.ended:
            return []
        region = self._query.interest(place)
        if self.last is not None and not must_switch(
            self._condition, self.last, place, t, region, self._count
        ):
            return []
        return self._begin(place, t, region)

    def end(self, t: float) -> list[tuple[str, Order]]:
        """The query ends: its last epoch is completed, and nothing is sent any more."""
        if self._pending is not None:
            self._latest = (None, t)
            return []
        if self.ended:
            return []
        return self._begin(None, t, None)

    @property
    def is_switching(self) -> bool:
        return self._pending is not None

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The servers that the present switch waits for."""
        return tuple(each for each in self.servers if each not in self._positions) if self._pending else ()

    @property
    def ended(self) -> bool:
        return bool(self.markers) and self.markers[-1].region is None

    def _begin(self, place: Point | None, t: float, region: Region | None) -> list[tuple[str, Order]]:
        self.epoch += 1
        self._pending = Pending(self.epoch, place, t, region)
        self._positions = {}
        if not self._query.policy.is_strict:
            return self._switch(max(t, self.last.t if self.last else t))
        return [(server, Hold(self.epoch)) for server in self.servers]

    def held(self, server: str, answer: Held) -> list[tuple[str, Order]]:
        pending = self._pending
        if pending is None or answer.epoch != pending.epoch or server not in self.servers:
            return []
        self._positions[server] = answer.position
        if len(self._positions) < len(self.servers):
            return []
        found = self._switch(max(pending.t, *self._positions.values()))
        if self._latest is not None:
            (place, t), self._latest = self._latest, None
            found += self.end(t) if place is None else self.located(place, t)
        return found

    def _switch(self, start: float) -> list[tuple[str, Order]]:
        pending = self._pending
        assert pending is not None
        self._pending = None
        if pending.region is None or pending.place is None:
            points, touched = basic_plan(self._query)(self.last, NOWHERE, start, pending.epoch)
        else:
            points, touched = self._plan(self.last, pending.region, start, pending.epoch)
            self.last = Switched(pending.place, start, pending.region)
        marker = Marker(start, pending.epoch, pending.region, points, touched)
        self.markers.append(marker)
        return [(server, Switch(marker)) for server in self.servers]
