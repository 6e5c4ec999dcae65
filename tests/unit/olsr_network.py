"""A network in memory for OLSR cores: packets travel after a delay, or get lost, as the test's radio says."""

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count, pairwise

from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface, Olsr, Outgoing

SECOND = 1_000_000_000
DELAY_NS = 1_000_000
BASE = 0x0A00_0000  # 10.0.0.0

Loss = Callable[[int, int, float], float | None]  # from, to, seconds → share lost; None = out of range


def address(node: int, subnet: int = 0) -> int:
    return BASE + (subnet << 16) + node


def edges(*pairs: tuple[int, int], loss: float = 0.0) -> Loss:
    linked = {*pairs, *((b, a) for a, b in pairs)}
    return lambda a, b, _: loss if (a, b) in linked else None


def line(nodes: Iterable[int]) -> list[tuple[int, int]]:
    return list(pairwise(nodes))


class Network:
    """Nodes are numbered from 1; each has one interface in 10.0.0.0/16 unless ``subnets`` says otherwise.

    Interfaces hear each other within a subnet only.
    """

    def __init__(
        self,
        nodes: Iterable[int],
        loss: Loss,
        config: OlsrConfig | None = None,
        seed: int = 1,
        subnets: dict[int, tuple[int, ...]] | None = None,
        configs: dict[int, OlsrConfig] | None = None,
    ) -> None:
        self.loss = loss
        self.now = 0
        self.sent: list[tuple[int, int, Outgoing]] = []  # when, by whom, what
        self.record = False
        self._random = random.Random(f"radio {seed}")
        self._seed = seed
        self._config = config or OlsrConfig()
        self._configs = configs or {}
        self._subnets = subnets or {}
        self._order = count()
        self._heap: list[tuple[int, int, int, tuple[bytes, int, int] | None]] = []
        self._armed: dict[int, int] = {}
        self.daemons: dict[int, Olsr] = {}
        for node in nodes:
            self.start(node)

    def start(self, node: int, restarts: int = 0) -> None:
        rng = random.Random(f"node {node} {restarts} {self._seed}")
        interfaces = [Interface(f"if{s}", address(node, s)) for s in self._subnets.get(node, (0,))]
        config = self._configs.get(node, self._config)
        self.daemons[node] = Olsr(config, interfaces, rng, self.now)
        self._arm(node)

    def stop(self, node: int) -> None:
        del self.daemons[node]
        self._armed.pop(node, None)

    def leave(self, node: int) -> None:
        """Says goodbye for it; it is still there."""
        for outgoing in self.daemons[node].farewell(self.now):
            self._broadcast(node, outgoing)

    def run(self, seconds: float) -> None:
        end = self.now + int(seconds * SECOND)
        while self._heap and self._heap[0][0] <= end:
            self.now, _, node, packet = heapq.heappop(self._heap)
            daemon = self.daemons.get(node)
            if daemon is None:
                continue
            if packet is not None:
                daemon.receive(*packet, self.now)
            elif self._armed.get(node) == self.now:
                del self._armed[node]
                for outgoing in daemon.wake(self.now):
                    self._broadcast(node, outgoing)
            self._arm(node)
        self.now = end

    def routes(self, node: int) -> dict[int, int]:
        """Destinations (node numbers) → hops, of those that are main addresses."""
        found = self.daemons[node].routes(self.now)
        mains = {daemon.main_address: other for other, daemon in self.daemons.items()}
        return {mains[a]: route.hops for a, route in found.items() if a in mains}

    def complete(self, nodes: Iterable[int] | None = None) -> bool:
        wanted = set(self.daemons if nodes is None else nodes)
        return all(wanted - {node} <= set(self.routes(node)) for node in wanted)

    def seconds_until(self, condition: Callable[[], bool], limit: float, step: float = 0.5) -> float:
        start = self.now
        while not condition():
            assert self.now - start < limit * SECOND, f"not within {limit} s"
            self.run(step)
        return (self.now - start) / SECOND

    def next_hop(self, node: int, destination: int) -> int | None:
        route = self.daemons[node].routes(self.now).get(self.daemons[destination].main_address)
        return None if route is None else (route.gateway - BASE) & 0xFFFF

    def _arm(self, node: int) -> None:
        when = max(self.now, self.daemons[node].next_wake_ns())
        if self._armed.get(node) != when:
            self._armed[node] = when
            heapq.heappush(self._heap, (when, next(self._order), node, None))

    def _broadcast(self, sender: int, outgoing: Outgoing) -> None:
        if self.record:
            self.sent.append((self.now, sender, outgoing))
        subnets = self._subnets.get(sender, (0,))
        subnet = subnets[outgoing.interface]
        source = self.daemons[sender].interfaces[outgoing.interface].address
        for node in self.daemons:
            theirs = self._subnets.get(node, (0,))
            if node == sender or subnet not in theirs:
                continue
            lost = self.loss(sender, node, self.now / SECOND)
            if lost is None or (lost and self._random.random() < lost):
                continue
            packet = (outgoing.data, theirs.index(subnet), source)
            heapq.heappush(self._heap, (self.now + DELAY_NS, next(self._order), node, packet))
