"""A broker: keeps events of its area, streams those that queries want, runs operators, moves interests.

A state machine without input and output: ``receive`` and ``tick`` return what to send to whom. A node is
believed only about itself: a client about its own events, a broker about its own streams. All else is
refused and counted.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.deployment import Deployment
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.graphs import MOST_GRAPHS, Graphs, graph_query
from node_agent.apps.mcep.home import GraphsHome, Home, How, MovingHome
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Said,
    Seen,
    Sent,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import Event, Query
from node_agent.apps.mcep.moving.messages import Happened, Moves
from node_agent.apps.mcep.moving.operators import MovingOperators
from node_agent.apps.mcep.progress import GONE, Progress
from node_agent.apps.mcep.reuse.deciding import Deciding
from node_agent.apps.mcep.reuse.offers import Covered, Offered
from node_agent.apps.mcep.reusing.on_broker import SharedSelections
from node_agent.apps.mcep.run import Done, Run
from node_agent.apps.mcep.sharing import Who
from node_agent.apps.mcep.site import Site
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.switching import Hold, Order

GRAPH = re.compile(r"(.+)/[1-9][0-9]{0,9}")
"""The name of a graph's run: of the first query that reads it, and a number."""


class Broker:
    """``patience``: for how many ticks best effort waits for a client or a broker that says nothing; None:
    for as long as it takes."""

    def __init__(self, name: str, deployment: Deployment, patience: int | None = None) -> None:
        self.name, self.deployment = name, deployment
        self._patience = patience
        self._is_strict = any(each.query.policy.is_strict for each in deployment.queries)
        self.brokers = deployment.brokers
        self._clients = frozenset(deployment.clients)
        self._moves = any(each.migration is not None for each in deployment.queries)
        self._progress = Progress(deployment.clients)
        self._numbers: dict[str, int] = {}
        """By client, the number of its last event here."""
        self._local: deque[Said] = deque()
        self._out: list[Sent] = []
        self._site = Site(name, deployment.brokers, Storage(deployment.ttl), self._send, lambda: self.arrived)
        self._sharing: SharedSelections | None = None
        if deployment.reuse is not None:
            self._sharing = SharedSelections(
                deployment.reuse, deployment.queries, self._site, lambda: self._progress.ready
            )
            self._site.sharing = self._sharing
        self._site.now = lambda: self._progress.latest
        self._site.boxes = deployment.areas.boxes
        self._here: set[str] = set()
        """Clients that speak to this broker, as it was the last to hear."""
        self._queries = {each.name: each for each in deployment.queries}
        self._groups = {group[0].name: group for group in deployment.groups}
        self._runs: dict[str, Run] = {}
        """What runs here: moving graphs by their query, graphs of regions by query and number."""
        self._ended = Done()
        """What runs did that are over."""
        self._homes: dict[str, Home] = {}
        for each in deployment.queries:
            if each.home == name and not each.has_graphs:
                self._homes[each.name] = MovingHome(each, self._site, self._runs)
            elif not each.has_graphs:
                self._runs[each.name] = Run(each.name, each.query, each, self._site)
        for group in deployment.groups:
            if group[0].home == name:
                graphs = Graphs(group, self._site, self._runs, self._read, self._has_read)
                self._homes.update({each.name: GraphsHome(each, self._site, graphs) for each in group})

    def report_to(self, happened: Callable[[Happened], None]) -> None:
        """``happened`` gets what operators that move do here."""
        self._site.happened = happened

    @property
    def refused(self) -> int:
        return self._site.refused

    @property
    def arrived(self) -> float:
        return self._progress.arrived

    @property
    def reached(self) -> float:
        """The same of the clients that this broker still waits for."""
        return self.arrived if self._is_strict else self._progress.ready

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The clients without whose word nothing goes on."""
        return tuple(self._progress.slowest())

    @property
    def stored(self) -> int:
        return len(self._site.storage)

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self._runs)

    @property
    def moving(self) -> dict[str, MovingOperators]:
        """By query, what this broker does for operators that move."""
        return {name: run.moving for name, run in self._runs.items() if run.moving is not None}

    def query(self, name: str) -> Query:
        return self._queries[name].query

    def markers(self, query: str) -> tuple[Marker, ...]:
        """The switches of a query whose home this is."""
        home = self._homes.get(query)
        return () if home is None else home.markers

    def how(self, query: str) -> tuple[How, ...]:
        """Of each switch of a query that has a graph for each region: where the graph came from."""
        home = self._homes.get(query)
        return tuple(home.how) if isinstance(home, GraphsHome) else ()

    def unanswered(self, query: str) -> tuple[str, ...]:
        """The brokers that a switch of a query waits for, if this is its home."""
        home = self._homes.get(query)
        return () if home is None else home.unanswered

    def done(self) -> Done:
        done = [self._ended, *(each.done() for each in self._runs.values())]
        if self._sharing is not None:
            done.append(Done(processed=self._sharing.processed, waiting=self._sharing.waiting))
        return Done.total(done)

    @property
    def managers(self) -> Mapping[str, Deciding]:
        """The selection managers that run here."""
        return {} if self._sharing is None else self._sharing.managers

    def receive(self, sender: str, said: Said) -> list[Sent]:
        self._handle(sender, said)
        return self._drain()

    def _drain(self) -> list[Sent]:
        while self._local:
            self._handle(self.name, self._local.popleft())
        found, self._out = self._out, []
        return found

    def tick(self) -> list[Sent]:
        """Call it every now and then: tells the other brokers what clients said, and forgets old events and
        graphs that have ended."""
        for name in [name for name, run in self._runs.items() if name not in self._queries and run.is_over]:
            self._ended = Done.total([self._ended, self._runs.pop(name).done()])
        for home in self._homes.values():
            home.look()
        if self._sharing is not None:
            self._sharing.look()
        for moving in self.moving.values():
            moving.tick()
        if self._patience is not None:
            self._hurry(self._patience)
        found = self._drain()
        news = tuple(self._progress.news().items())
        self._site.storage.expire(min([self.reached, *(each.needed_since() for each in self._runs.values())]))
        return found + [(each, Known(news)) for each in self.brokers if each != self.name and news]

    def _hurry(self, patience: int) -> None:
        self._progress.look(patience)
        for run in list(self._runs.values()):
            if run.hurries:
                run.progress(self._progress.ready)
                run.look(patience)

    def _send(self, to: str, said: Said) -> None:
        if to == self.name:
            self._local.append(said)
        else:
            self._out.append((to, said))

    def _handle(self, sender: str, said: Said) -> None:
        match said:
            case Seen(events) if sender in self._clients:
                self._keep(sender, events)
            case UpTo(t) if sender in self._clients:
                self._hear(((sender, t),), itself=True)
            case Known(upto) if sender in self.brokers:
                self._hear(upto, itself=False)
            case Located(query, place, t) if query in self._homes:
                self._homes[query].located(sender, place, t)
            case Ordered(name, order) if self._knows(name, sender, order):
                self._runs[name].ordered(sender, order)
            case Answered(name, answer) if name in self._runs:
                self._runs[name].answered(sender, answer)
                for home in self._homes.values():
                    home.look()
            case Moves(name, told) if name in self._runs and (moving := self._runs[name].moving):
                moving.receive(sender, told)
            case Streamed(name, successor, channel, message) if name in self._runs:
                self._runs[name].streamed(sender, successor, channel, message)
            case Offered() if self._sharing is not None:
                self._sharing.offered(said)
            case Covered() if self._sharing is not None:
                for each in self._sharing.covered(said):
                    self._runs[each.query].sent_by(each.operator, each.sent)
            case _:
                self._site.refused += 1

    def _knows(self, name: str, sender: str, order: Order) -> bool:
        """Whether there is such a run. That of a graph is made when its home first asks it to hold."""
        if name in self._runs or not isinstance(order, Hold) or not (found := GRAPH.fullmatch(name)):
            return name in self._runs
        group = self._groups.get(found[1])
        if group is None or sender != group[0].home or self._graphs_of(found[1]) >= 2 * MOST_GRAPHS:
            return False
        self._runs[name] = Run(name, graph_query(group), group[0], self._site)
        return True

    def _graphs_of(self, query: str) -> int:
        return sum(each.startswith(f"{query}/") for each in self._runs)

    def _read(self, who: Who, event: Event) -> None:
        home = self._homes[who[0]]
        assert isinstance(home, GraphsHome)
        home.take(who[1], event)

    def _has_read(self, who: Who) -> None:
        home = self._homes[who[0]]
        assert isinstance(home, GraphsHome)
        home.done(who[1])

    def _keep(self, sender: str, events: Iterable[Event]) -> None:
        """What is said after its time may already have been left out of results: it does not count. Nor
        does an event whose number came before: no two are at the same place in the order."""
        for event in events:
            is_own = event.source == sender and isinstance(event.place, Point)
            is_new = event.seq > self._numbers.get(sender, -1)
            if is_own and is_new and event.t >= self._progress.of(sender):
                self._numbers[sender] = event.seq
                self._site.storage.add(event)
            else:
                self._site.refused += 1

    def _note_visits(self, upto: Iterable[tuple[str, float]], *, itself: bool) -> None:
        """Operators that move want to know where clients go."""
        for client, t in upto if self._moves else ():
            if not itself:
                self._here.discard(client)
            elif client not in self._here and t < GONE:
                self._here.add(client)
                for moving in self.moving.values():
                    moving.visited(client, t)

    def _hear(self, upto: Iterable[tuple[str, float]], *, itself: bool) -> None:
        upto = tuple(upto)
        self._note_visits(upto, itself=itself)
        if self._progress.hear_all(upto, itself=itself):
            for run in self._runs.values():
                run.progress(self.arrived)
            for home in self._homes.values():
                home.progress(self.arrived)
        for home in self._homes.values():
            home.pass_time(self._progress.latest)
