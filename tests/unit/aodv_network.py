"""AODV cores on a network that is only a set of links: messages take a millisecond, or a random time."""

import random
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from node_agent.aodv.actions import Action, Drop, Forward, Send
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.core import Aodv

LATENCY_NS = 1_000_000
SECOND_NS = 1_000_000_000


class Data(NamedTuple):
    source: int
    destination: int
    number: int


class AodvNetwork:
    """Nodes 1…n. Links carry in both directions; what is sent over none is lost, and noticed if unicast."""

    def __init__(
        self,
        nodes: int,
        links: Iterable[tuple[int, int]],
        config: AodvConfig | None = None,
        seed: int = 1,
        loss: float = 0.0,
        jitter_ns: int = 0,
    ) -> None:
        """``loss``: the share of control messages that vanish unnoticed; ``jitter_ns`` lets them overtake."""
        self.now_ns = 0
        self.config = config or AodvConfig()
        self.links = {frozenset(link) for link in links}
        self.one_way: set[tuple[int, int]] = set()
        self.delivered: list[Data] = []
        self.drops: list[tuple[int, Data, str]] = []
        self.log: list[tuple[int, int, int | None, bytes]] = []
        """When, who, to whom, what."""
        self.on_event: Callable[[], None] = lambda: None
        self._loss = loss
        self._jitter_ns = jitter_ns
        self._random = random.Random(seed)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._sent = 0
        self.cores = {
            node: Aodv[Data](self.config, node, random.Random(f"{seed}/{node}"), 0)
            for node in range(1, nodes + 1)
        }

    def connected(self, here: int, there: int) -> bool:
        return frozenset((here, there)) in self.links and (there, here) not in self.one_way

    def send(self, source: int, destination: int) -> Data:
        self._sent += 1
        data = Data(source, destination, self._sent)
        self._act(source, self.cores[source].originate(data, destination, self.now_ns))
        return data

    def run(self, seconds: float) -> None:
        until_ns = self.now_ns + round(seconds * SECOND_NS)
        while True:
            wake_ns, node = min((core.next_wake_ns(), node) for node, core in self.cores.items())
            event_ns = self._events[0][0] if self._events else until_ns + 1
            if min(wake_ns, event_ns) > until_ns:
                self.now_ns = until_ns
                return
            if event_ns <= wake_ns:
                self.now_ns, _, happen = heappop(self._events)
                happen()
            else:
                self.now_ns = max(self.now_ns, wake_ns)
                self._act(node, self.cores[node].wake(self.now_ns))
            self.on_event()

    def route(self, here: int, destination: int) -> list[int]:
        """The nodes that a packet would pass now; ends where no route leads on, or where it was already."""
        path = [here]
        while path[-1] != destination and len(path) == len(set(path)):
            route = self.cores[path[-1]].table.valid(destination, self.now_ns)
            if route is None:
                break
            path.append(route.next_hop)
        return path

    def _loses(self) -> bool:
        return self._random.random() < self._loss

    def _later(self, happen: Callable[[], None]) -> None:
        self._order += 1
        when_ns = self.now_ns + LATENCY_NS + round(self._random.random() * self._jitter_ns)
        heappush(self._events, (when_ns, self._order, happen))

    def _act(self, node: int, actions: list[Action[Data]]) -> None:
        for action in actions:
            match action:
                case Send(data, None, ttl):
                    self.log.append((self.now_ns, node, None, data))
                    for other in self.cores:
                        if self.connected(node, other) and not self._loses():
                            self._later(partial(self._hear, other, data, node, ttl))
                case Send(data, int(to), ttl):
                    self.log.append((self.now_ns, node, to, data))
                    if not self._loses():
                        self._unicast(node, to, partial(self._hear, to, data, node, ttl))
                case Forward(packet, next_hop):
                    self._carry(node, next_hop, packet)
                case Drop(packet, reason):
                    self.drops.append((node, packet, reason))

    def _hear(self, node: int, data: bytes, sender: int, ttl: int) -> None:
        self._act(node, self.cores[node].receive(data, sender, ttl, self.now_ns))

    def _carry(self, node: int, next_hop: int, packet: Data) -> None:
        self._unicast(node, next_hop, lambda: self._arrive(next_hop, node, packet))

    def _unicast(self, node: int, to: int, arrive: Callable[[], None]) -> None:
        if self.connected(node, to):
            self._later(arrive)
        elif self.config.detection == "feedback":
            self._later(lambda: self._act(node, self.cores[node].link_failed(to, self.now_ns)))

    def _arrive(self, node: int, came_from: int, packet: Data) -> None:
        core = self.cores[node]
        if packet.destination == node:
            core.keep_alive(packet.source, self.now_ns)
            self.delivered.append(packet)
            return
        next_hop = core.next_hop(packet.destination, packet.source, came_from, self.now_ns)
        if next_hop is None:
            self._act(node, core.unroutable(packet.destination, packet.source, self.now_ns))
        else:
            self._carry(node, next_hop, packet)


def line(nodes: int) -> list[tuple[int, int]]:
    return [(node, node + 1) for node in range(1, nodes)]


def ring(nodes: int) -> list[tuple[int, int]]:
    return [*line(nodes), (nodes, 1)]
