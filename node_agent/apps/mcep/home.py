"""The home of a query: follows the focal object, and sends it results. Two ways to follow.

``MovingHome`` has one graph whose interest moves by markers (thesis, Alg. 3.3). ``GraphsHome`` has a graph
for each region and reads one after the other (Alg. 3.9): graphs that were prepared where the object was
expected, that other queries read too, or that begin at the switch.
"""

import math
from collections.abc import Iterable, MutableMapping
from typing import Literal, NamedTuple

from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.foresight import Foresight
from node_agent.apps.mcep.geometry import Point, Region
from node_agent.apps.mcep.graphs import Graph, Graphs
from node_agent.apps.mcep.interest import Switched, must_switch
from node_agent.apps.mcep.messages import Placed, Results
from node_agent.apps.mcep.model import Event, Quality, quality
from node_agent.apps.mcep.prediction import best_for, may_use
from node_agent.apps.mcep.reading import Reading
from node_agent.apps.mcep.run import HomeRun, Run
from node_agent.apps.mcep.sight import Sight
from node_agent.apps.mcep.site import Site

How = Literal["began", "prepared", "shared"]


class Home:
    """What both ways have in common."""

    def __init__(self, deployed: Deployed, site: Site) -> None:
        self._deployed, self._site = deployed, site
        self._placing: float | None = None
        """Of which time the focal object's place is, as long as it has not had its effect."""

    @property
    def markers(self) -> tuple[Marker, ...]:
        """The switches so far."""
        raise NotImplementedError

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The brokers that a switch waits for."""
        raise NotImplementedError

    @property
    def _is_switching(self) -> bool:
        raise NotImplementedError

    def _locate(self, place: Point | None, t: float) -> None:
        raise NotImplementedError

    def located(self, sender: str, place: Point | None, t: float) -> None:
        if sender != self._deployed.query.focal_object:
            self._site.refused += 1
            return
        self._placing = t
        self._locate(place, t)
        self.look()

    def look(self) -> None:
        """Something was answered or ended: goes on if it waited for that."""
        if self._placing is not None and not self._is_switching:
            query = self._deployed.query
            self._site.send(query.focal_object, Placed(query.name, self._placing))
            self._placing = None

    def progress(self, arrived: float) -> None:
        """All events before this time are there."""

    def pass_time(self, now: float) -> None:
        """It is about this time."""

    def _count(self, regions: Iterable[Region], since: float, before: float) -> int:
        """Of this broker's own area only."""
        types = [source.type for source in self._deployed.query.graph.sources]
        return self._site.count(types, regions, since, before)

    def _deliver(self, results: list[Delivered]) -> None:
        if results:
            query = self._deployed.query
            self._site.send(query.focal_object, Results(query.name, tuple(results)))


class MovingHome(Home):
    def __init__(self, deployed: Deployed, site: Site, runs: MutableMapping[str, Run]) -> None:
        super().__init__(deployed, site)
        self._run = runs[deployed.name] = HomeRun(
            deployed.name,
            deployed.query,
            deployed,
            site,
            lambda found, _: self._deliver(found),
            deployed.condition,
            self._count,
        )

    @property
    def markers(self) -> tuple[Marker, ...]:
        return self._run.markers

    @property
    def unanswered(self) -> tuple[str, ...]:
        return self._run.unanswered

    @property
    def _is_switching(self) -> bool:
        return self._run.is_switching

    def _locate(self, place: Point | None, t: float) -> None:
        self._run.locate(place, t)


class Pending(NamedTuple):
    """A switch that waits for its graph to begin."""

    place: Point
    t: float
    region: Region
    graph: Graph | None
    how: How


class GraphsHome(Home):
    """``how``: of each switch, where its graph came from."""

    def __init__(self, deployed: Deployed, site: Site, graphs: Graphs) -> None:
        super().__init__(deployed, site)
        query = deployed.query
        self.how: list[How] = []
        self.qualities: list[Quality | None] = []
        """Of each switch to a prepared graph, as expected."""
        self._graphs = graphs
        self._reading = Reading(strict=query.policy.is_strict)
        self._markers: list[Marker] = []
        self._last: Switched | None = None
        self._current: Graph | None = None
        self._pending: Pending | None = None
        self._prepared: dict[int, list[Graph]] = {}
        """By step."""
        self._foresight: Foresight | None = None
        look_back = deployed.prediction.look_back if deployed.prediction else 1.0
        self._sight = Sight(site, [source.type for source in query.graph.sources], look_back)
        if deployed.prediction is not None:
            self._foresight = Foresight(
                deployed.prediction, deployed.condition, query.interest, self._sight, query.look_back
            )

    @property
    def markers(self) -> tuple[Marker, ...]:
        return tuple(self._markers)

    @property
    def unanswered(self) -> tuple[str, ...]:
        graph = self._pending.graph if self._pending is not None else None
        return () if graph is None else graph.run.unanswered

    @property
    def _is_switching(self) -> bool:
        return self._pending is not None

    def _locate(self, place: Point | None, t: float) -> None:
        if self._pending is not None or (self._markers and self._markers[-1].region is None):
            self._site.refused += 1  # a client waits for one place to have its effect before it tells another
        elif place is None:
            self._end(t)
        else:
            region = self._deployed.query.interest(place)
            last = self._last
            if last is None or must_switch(self._deployed.condition, last, place, t, region, self._count):
                self._pending = self._found(place, t, region)
                self.look()
            elif self._foresight is not None:
                self._foresee(place, t)

    def _found(self, place: Point, t: float, region: Region) -> Pending:
        """The graph that serves a switch, if there is one that can."""
        if self._foresight is not None:
            step = self._foresight.switched(t)
            ready = self._best(self._prepared.get(step, []), region, t)
            if ready is not None:
                return Pending(place, t, ready.results.region, ready, "prepared")
        return Pending(place, t, region, None, "began")

    def _best(self, prepared: list[Graph], region: Region, t: float) -> Graph | None:
        assert self._deployed.prediction is not None
        begun = {
            each.number: each for each in prepared if (marker := each.began()) is not None and marker.t <= t
        }
        wanted = self._sight.events(region, t)
        inside = {
            number: self._sight.events(each.results.region, t) for number, each in sorted(begun.items())
        }
        best = best_for(wanted, inside, "precision")
        if best is None:
            return None
        graph, found = begun[best], quality(wanted, inside[best])
        complete = graph.results.has_history(self._site.arrived())
        hurried = not self._deployed.query.policy.is_strict
        if not may_use(complete, found, self._deployed.prediction.least, best_effort=hurried):
            return None
        self.qualities.append(found)
        return graph

    def look(self) -> None:
        pending = self._pending
        if pending is not None and pending.graph is None and not self._graphs.is_full:
            pending = self._pending = self._entered(pending)
        if pending is not None and pending.graph is not None:
            begun = pending.graph.began()
            if begun is not None:
                self._begin(pending, pending.graph, begun)
        super().look()

    def _entered(self, pending: Pending) -> Pending:
        start = pending.t
        if self._graphs.is_strong and self._site.arrived() > -math.inf:
            start = min(start, self._site.arrived())  # no other query can want it from an earlier time
        before = self._graphs.number
        graph = self._graphs.enter(pending.region, pending.place, start)
        return pending._replace(graph=graph, how="began" if self._graphs.number > before else "shared")

    def _begin(self, pending: Pending, graph: Graph, begun: Marker) -> None:
        self._pending = None
        t = max(pending.t, begun.t)
        epoch = len(self._markers) + 1
        self._leave(t)
        marker = Marker(t, epoch, pending.region, begun.points, begun.touched)
        self._markers.append(marker)
        self.how.append(pending.how)
        if pending.how != "prepared":
            self.qualities.append(None)
        self._last = Switched(pending.place, t, pending.region)
        self._current = graph
        found = self._reading.begin(marker)
        name = (self._deployed.name, epoch)
        for event in graph.results.join(name, t, self._deployed.query.history):
            found += self._reading.take(epoch, event)
        self._deliver(found)
        if self._foresight is not None:
            self._foresee(pending.place, pending.t)
        self._graphs.expire(t)

    def _leave(self, t: float) -> None:
        if self._current is None:
            return
        name = (self._deployed.name, len(self._markers))
        if self._deployed.query.policy.is_strict:
            self._graphs.leave(self._current, name, t)
        else:
            self._current.results.release(name)

    def _end(self, t: float) -> None:
        self._leave(t)
        points = self._deployed.query.graph.points(t, self._deployed.query.history)
        epoch = len(self._markers) + 1
        self._markers.append(Marker(t, epoch, None, points, frozenset()))
        for step in list(self._prepared):
            self._give_up(step)
        self._foresight = None
        self._graphs.expire(t)

    def _foresee(self, place: Point, t: float) -> None:
        foresight = self._foresight
        assert foresight is not None
        for step in [*foresight.located(place, t), *(s for s in self._prepared if s <= foresight.step)]:
            self._give_up(step)
        self._prepare(t)
        self._graphs.expire(t)

    def _give_up(self, step: int) -> None:
        for graph in self._prepared.pop(step, []):
            graph.results.release((self._deployed.name, -step))

    def _prepare(self, now: float) -> None:
        if self._foresight is None or self._pending is not None:
            return
        for step, start, chosen in self._foresight.due(now):
            for each in chosen:
                if not self._graphs.is_full:
                    graph = self._graphs.enter(each.region, each.place, start)
                    graph.results.reserve((self._deployed.name, -step))
                    self._prepared.setdefault(step, []).append(graph)

    def progress(self, arrived: float) -> None:
        self._graphs.expire(arrived)

    def pass_time(self, now: float) -> None:
        self._prepare(now)

    def take(self, epoch: int, event: Event) -> None:
        self._deliver(self._reading.take(epoch, event))

    def done(self, epoch: int) -> None:
        self._deliver(self._reading.done(epoch))
