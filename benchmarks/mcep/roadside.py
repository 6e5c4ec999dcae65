"""One broker that serves a crowd and one driver in virtual time, where each event takes operators a while.

The broker is the real one. Each run of a graph has a processor of its own: events wait for it in order, and
all else goes with them. With best effort, what waits is dropped when the interest switches. Nothing else
takes time.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.mcep.crowd import CROWD, Crowd
from benchmarks.mcep.figure_files import Asking
from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.channel import Log, Marker
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import squares
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.interest import Condition
from node_agent.apps.mcep.messages import Results, Said, Seen, Sent, Streamed, UpTo
from node_agent.apps.mcep.model import Event, Query
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.progress import GONE

BROKER, QUERY = "b1", "q"
BATCH_S = 0.1
"""The crowd tells what it saw so often."""


class Watched(Broker):
    """Gives its own streams out too, so that they can take time."""

    def _send(self, to: str, said: Said) -> None:
        if isinstance(said, Streamed):
            self._out.append((to, said))
        else:
            super()._send(to, said)


class Told(NamedTuple):
    at: float
    result: Delivered


class Asked(NamedTuple):
    """What a driver asks for, and how it is followed."""

    query: Query
    condition: Condition
    prediction: Prediction | None = None


def asked_by(who: str, asking: Asking, prediction: Prediction | None = None) -> Asked:
    """A query of one driver for squares around it."""
    query = Query(QUERY, asking.graph, who, squares(asking.edge), asking.history, asking.policy)
    return Asked(query, asking.condition, prediction)


class Roadside:
    """``walker``: the vehicle that is followed; it tells its place once a second. ``per_event``: seconds."""

    def __init__(
        self, crowd: Crowd, events: Sequence[Event], walker: str, asked: Asked, per_event: float = 0.0
    ) -> None:
        query = asked.query
        hosts = {each.name: BROKER for each in query.graph.operators}
        deployed = Deployed(query, hosts, BROKER, asked.condition, asked.prediction)
        areas = grid([BROKER], crowd.area)
        deployment = Deployment(areas, (CROWD, walker), (deployed,), query.look_back + 60.0)
        check_deployment(deployment)
        self.broker = Watched(BROKER, deployment)
        self.results: list[Told] = []
        self.streamed = 0
        """Events and logs on streams to operators."""
        self.graphs = 0
        """Runs of graphs so far."""
        self._crowd, self._events, self._per_event = crowd, events, per_event
        self._hurried = not query.policy.is_strict
        self._walker = Client(walker, areas, {QUERY: BROKER})
        self._now = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._free: dict[str, float] = {}
        self._cut: dict[str, int] = {}
        """By run, the number up to which what waits is dropped."""

    @property
    def markers(self) -> tuple[Marker, ...]:
        return self.broker.markers(QUERY)

    def play(self) -> "Roadside":
        until, first = self._crowd.seconds, 0
        for number in range(1, math.ceil(until / BATCH_S) + 1):
            t = min(number * BATCH_S, until)
            last = first
            while last < len(self._events) and self._events[last].t < t:
                last += 1
            self._at(t, lambda some=tuple(self._events[first:last]), t=t: self._batch(some, t))  # type: ignore[misc]
            first = last
        for second in range(1, int(until)):
            self._at(float(second), lambda t=float(second): self._move(t))  # type: ignore[misc]
        self._at(until, self._leave)
        while self._agenda:
            self._now, _, action = heapq.heappop(self._agenda)
            action()
        return self

    def _at(self, t: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (t, self._number, action))

    def _batch(self, events: tuple[Event, ...], t: float) -> None:
        if events:
            self._say(CROWD, Seen(events))
        self._say(CROWD, UpTo(t))
        self._carry(self._walker.tell(t))
        self._carry(self.broker.tick())

    def _move(self, t: float) -> None:
        self._carry(self._walker.move(self._crowd.place(self._walker.name, t), t))

    def _leave(self) -> None:
        self._say(CROWD, UpTo(GONE))
        self._carry(self._walker.leave(self._crowd.seconds))
        self._carry(self._walker.tell(GONE))
        self._carry(self.broker.tick())

    def _say(self, sender: str, said: Said) -> None:
        self._carry(self.broker.receive(sender, said))

    def _carry(self, sent: list[Sent]) -> None:
        for to, said in sent:
            if isinstance(said, Streamed):
                self._stream(said)
            elif to == BROKER:
                self._say(self._walker.name, said)
            else:
                if isinstance(said, Results):
                    self.results += [Told(self._now, each) for each in said.results]
                self._carry(self._walker.receive(BROKER, said))

    def _stream(self, said: Streamed) -> None:
        run, now = said.query, self._now
        if said.successor == CONSUMER:
            self._at(now, lambda: self._say(BROKER, said))
            return
        if self._hurried and isinstance(said.message, Marker) and said.message.epoch > 1:
            self._cut[run], self._free[run] = self._number, now
        self.graphs += isinstance(said.message, Marker) and said.message.epoch == 1
        self.streamed += isinstance(said.message, Event | Log)
        takes = self._per_event if isinstance(said.message, Event) else 0.0
        self._free[run] = max(now, self._free.get(run, 0.0)) + takes
        number = self._number + 1

        def arrive() -> None:
            if number > self._cut.get(run, 0):
                self._say(BROKER, said)

        self._at(self._free[run], arrive)
