"""What a run must deliver under strict completeness, computed from its plan without a network.

The same drives give the same results however long messages take, so brokers and clients are played here with
messages that take no time. ``due_s``: when a result could be known first, in seconds of the drives.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.config import deployment_of, homes_of, readings_of
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.messages import Said, Seen, Sent
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.sensing import Reading
from orchestrator.apps.mcep.plan import Recorded

TICK_S = 1.0
ROUNDS = 3
"""Ticks until all brokers know that all clients have left."""


class Expected(NamedTuple):
    """A result: the epoch, its type and time, and the events that it was made of."""

    epoch: int
    type: str
    at_ns: int
    ancestors: tuple[str, ...]
    due_s: float


class Rehearsal:
    def __init__(self, recorded: Recorded) -> None:
        settings = recorded.settings
        deployment = deployment_of(settings)
        self.brokers = {name: Broker(name, deployment) for name in deployment.brokers}
        self.clients = {
            name: Client(name, deployment.areas, homes_of(settings, name)) for name in deployment.clients
        }
        self._recorded = recorded

    def play(self) -> dict[str, list[Expected]]:
        """Results by query, in the order in which they are delivered."""
        settings, tick = self._recorded.settings, TICK_S
        for t, name, reading in heapq.merge(*map(self._readings, settings.clients)):
            while t >= tick:
                self._tick()
                tick += TICK_S
            client = self.clients[name]
            self._carry(name, client.see(reading.type, t, reading.place, reading.attributes)[1])
            self._carry(name, client.move(Point(*reading.place), t))
        for name, client in self.clients.items():
            self._carry(name, client.leave(settings.until))
        for _ in range(ROUNDS):
            for name, client in self.clients.items():
                self._carry(name, client.tell(GONE))
            self._tick()
        return self._results()

    def _readings(self, name: str) -> Iterator[tuple[float, str, Reading]]:
        for reading in readings_of(self._recorded.config(name)):
            yield reading.t, name, reading

    def _tick(self) -> None:
        for name, broker in self.brokers.items():
            self._carry(name, broker.tick())

    def _carry(self, sender: str, sent: Iterable[Sent]) -> None:
        waiting: deque[tuple[str, str, Said]] = deque((sender, to, said) for to, said in sent)
        while waiting:
            sender, to, said = waiting.popleft()
            if to in self.brokers:
                answers = self.brokers[to].receive(sender, said)
                if isinstance(said, Seen):
                    self.clients[sender].acknowledged(to, said.events[-1].seq)
            else:
                answers = self.clients[to].receive(sender, said)
            waiting.extend((to, each, more) for each, more in answers)

    def _results(self) -> dict[str, list[Expected]]:
        found: dict[str, list[Expected]] = {}
        for query in self._recorded.settings.queries:
            starts = {marker.epoch: marker.t for marker in self.brokers[query.home].markers(query.name)}
            found[query.name] = [
                Expected(
                    each.epoch,
                    each.event.type,
                    round(each.event.t * 1e9),
                    tuple(f"{source}#{seq}" for source, seq in sorted(each.event.provenance)),
                    max(each.event.t, starts[each.epoch]),
                )
                for name, each in self.clients[query.focal].results
                if name == query.name
            ]
        return found
