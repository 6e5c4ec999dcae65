"""Brokers and clients of a deployment, played with messages that take no time.

Strict queries deliver the same however long messages take. So this tells what a run must deliver, and how
much work it is without a network.
"""

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.deployment import Deployment
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.messages import Said, Seen, Sent
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.sensing import Drive, Reading

TICK_S = 1.0
ROUNDS = 3
"""Ticks until all brokers know that all clients have left."""


class Stage:
    """``seen``: events of sensors so far. ``sent``: messages by kind."""

    def __init__(self, deployment: Deployment) -> None:
        homes: dict[str, dict[str, str]] = {}
        for each in deployment.queries:
            homes.setdefault(each.query.focal_object, {})[each.name] = each.home
        self.brokers = {name: Broker(name, deployment) for name in deployment.brokers}
        self.clients = {name: Client(name, deployment.areas, homes.get(name)) for name in deployment.clients}
        self.seen = 0
        self.sent: Counter[str] = Counter()

    def play(self, readings: Mapping[str, Iterable[Reading]], until: float) -> None:
        """``readings``: by client, what its sensors see, in order of time. All leave at ``until``."""
        tick = TICK_S
        for t, name, reading in heapq.merge(*(_named(name, each) for name, each in readings.items())):
            while t >= tick:
                self._tick()
                tick += TICK_S
            client = self.clients[name]
            if not reading.is_silent:
                self.seen += 1
                self._carry(name, client.see(reading.type, t, reading.place, reading.attributes)[1])
            self._carry(name, client.move(Point(*reading.place), t))
        for name, client in self.clients.items():
            self._carry(name, client.leave(until))
        for _ in range(ROUNDS):
            for name, client in self.clients.items():
                self._carry(name, client.tell(GONE))
            self._tick()

    def _tick(self) -> None:
        for name, broker in self.brokers.items():
            self._carry(name, broker.tick())

    def _carry(self, sender: str, sent: Iterable[Sent]) -> None:
        waiting: deque[tuple[str, str, Said]] = deque([(sender, to, said) for to, said in sent])
        while waiting:
            sender, to, said = waiting.popleft()
            self.sent[type(said).__name__] += 1
            if to in self.brokers:
                answers = self.brokers[to].receive(sender, said)
                if isinstance(said, Seen):
                    self.clients[sender].acknowledged(to, said.events[-1].seq)
            else:
                answers = self.clients[to].receive(sender, said)
            waiting.extend((to, each, more) for each, more in answers)


def _named(name: str, readings: Iterable[Reading]) -> Iterator[tuple[float, str, Reading]]:
    for each in readings:
        yield each.t, name, each


def driven(drives: Mapping[str, Drive], every: float, until: float) -> dict[str, list[Reading]]:
    """By vehicle, what its sensors see; not all read at the same moment."""
    return {
        name: list(drive.readings(every, until, every * (number + 0.5) / len(drives)))
        for number, (name, drive) in enumerate(drives.items())
    }
