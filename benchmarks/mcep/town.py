"""Vehicles that drive, brokers that serve them, and one query, in virtual time without a network between."""

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Mapping

from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.deployment import Deployment, check_deployment
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.messages import Said, Seen, Sent
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.sensing import Drive, Reading

TICK_S = 1.0


class Town:
    """``every``: seconds between two readings of a vehicle. ``events``: all that was seen, if it is kept."""

    def __init__(
        self,
        deployment: Deployment,
        drives: Mapping[str, Drive],
        every: float,
        until: float,
        keep: bool = False,
    ) -> None:
        check_deployment(deployment)
        self.events: list[Event] = []
        self.seen = 0
        self.sent: Counter[str] = Counter()
        self._drives, self._every, self._until, self._keep = drives, every, until, keep
        homes: dict[str, dict[str, str]] = {}
        for each in deployment.queries:
            homes.setdefault(each.query.focal_object, {})[each.name] = each.home
        self.brokers = {name: Broker(name, deployment) for name in deployment.brokers}
        self.clients = {name: Client(name, deployment.areas, homes.get(name)) for name in deployment.clients}
        self._waiting: deque[tuple[str, str, Said]] = deque()

    def play(self) -> None:
        tick = TICK_S
        readings = [self._readings(number, name) for number, name in enumerate(self._drives)]
        for t, name, reading in heapq.merge(*readings):
            while t >= tick:
                self._tick()
                tick += TICK_S
            self._read(self.clients[name], t, reading)
        for client in self.clients.values():
            self._send(client.name, client.leave(self._until))
        for _ in range(3):
            for client in self.clients.values():
                self._send(client.name, client.tell(GONE))
            self._tick()

    def _readings(self, number: int, name: str) -> Iterator[tuple[float, str, Reading]]:
        phase = self._every * (number + 0.5) / len(self._drives)
        for reading in self._drives[name].readings(self._every, self._until, phase):
            yield reading.t, name, reading

    def _read(self, client: Client, t: float, reading: Reading) -> None:
        event, sent = client.see(reading.type, t, reading.place, reading.attributes)
        self.seen += 1
        if self._keep:
            self.events.append(event)
        self._send(client.name, sent)
        self._send(client.name, client.move(Point(*reading.place), t))

    def _tick(self) -> None:
        for broker in self.brokers.values():
            self._send(broker.name, broker.tick())

    def _send(self, sender: str, sent: list[Sent]) -> None:
        self._waiting.extend((sender, to, said) for to, said in sent)
        while self._waiting:
            sender, to, said = self._waiting.popleft()
            self.sent[type(said).__name__] += 1
            if to in self.brokers:
                answers = self.brokers[to].receive(sender, said)
                if isinstance(said, Seen):
                    self.clients[sender].acknowledged(to, said.events[-1].seq)
            else:
                answers = self.clients[to].receive(sender, said)
            self._waiting.extend((to, each, more) for each, more in answers)


def numbered(count: int, prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))
