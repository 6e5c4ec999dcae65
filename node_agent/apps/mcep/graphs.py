"""The graphs of queries that follow their focal objects by one graph for each region (thesis, section 3.4,
and P3 for strong completeness).

A graph is a run of its own over one region. Graphs of predicted interests begin before the switch; graphs
that several queries read serve all who want their region.
"""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace

from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.geometry import Point, Region
from node_agent.apps.mcep.model import Event, Policy, Query
from node_agent.apps.mcep.run import HomeRun, Run
from node_agent.apps.mcep.sharing import RegionResults, SharedGraphs, Who
from node_agent.apps.mcep.site import Site

MOST_GRAPHS = 64
"""That run or end at one time, for queries that ask for the same."""

LINGER_S = 1.0
"""How much longer than it must a shared graph runs on without readers."""


def graph_query(group: Sequence[Deployed]) -> Query:
    """What runs for one region: complete, in order and with the longest history that one of the queries
    asks for, so that all can read it."""
    history = max(each.query.history for each in group)
    return replace(group[0].query, history=history, policy=Policy())


class Graph:
    """One region's run at the home."""

    def __init__(self, number: int, run: HomeRun, results: RegionResults) -> None:
        self.number, self.run, self.results = number, run, results

    def began(self) -> Marker | None:
        """The marker with which it began, once it has."""
        found = self.run.markers
        if not found:
            return None
        self.results.begun = found[0].t
        return found[0]


Takes = Callable[[Who, Event], None]
Done = Callable[[Who], None]


class Graphs:
    """``group``: the queries that ask for the same; runs are named after the first of them. ``runs``: all
    runs on this broker."""

    def __init__(
        self, group: Sequence[Deployed], site: Site, runs: MutableMapping[str, Run], takes: Takes, done: Done
    ) -> None:
        self._leader, self._site, self._runs = group[0], site, runs
        self._takes, self._done = takes, done
        self._query = graph_query(group)
        self.is_strong = group[0].query.policy.completeness == "strong"
        look_back = self._query.look_back
        linger = look_back + LINGER_S if self.is_strong else None
        self._shared = SharedGraphs(self._query.history, look_back - self._query.history, linger)
        self._graphs: dict[Region, Graph] = {}
        self.number = 0
        """Of the last graph."""

    @property
    def is_full(self) -> bool:
        return sum(each.startswith(f"{self._leader.name}/") for each in self._runs) >= MOST_GRAPHS

    def enter(self, region: Region, place: Point, t: float) -> Graph:
        """The graph of a region; if there is none, it begins at ``t``."""
        results, fresh = self._shared.enter(region, t)
        if fresh:
            self.number += 1
            number = self.number
            name = f"{self._leader.name}/{number}"

            def came(found: list[Delivered], complete_to: float) -> None:
                self._came(results, number, found, complete_to)

            run = HomeRun(name, self._query, self._leader, self._site, came)
            self._runs[name] = run
            self._graphs[region] = Graph(number, run, results)
            run.locate(place, t)
        return self._graphs[region]

    def _came(self, results: RegionResults, number: int, found: list[Delivered], complete_to: float) -> None:
        for each in found:
            event = each.event._replace(born=number)
            for who in results.add(event):
                self._takes(who, event)
        for who in results.progress(complete_to):
            self._done(who)

    def leave(self, graph: Graph, who: Who, until: float) -> None:
        for each in graph.results.leave(who, until):
            self._done(each)

    def expire(self, now: float) -> None:
        """Ends graphs that nobody reads or may read."""
        for region in self._shared.expire(now):
            graph = self._graphs.pop(region)
            assert graph.results.left is not None
            graph.run.locate(None, graph.results.left)
