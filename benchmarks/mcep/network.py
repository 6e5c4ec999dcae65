"""Runs the state machines of one query over a network of delayed channels, one event of the simulation
after another.

Sensors send what they see to the server of the area they are in, and heartbeats to all servers. Every
channel is first in, first out; each message takes a random time. A machine that crashes takes part in
nothing any more; a link that is cut delivers nothing until it is mended, and then everything.
"""

import heapq
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.mcep.worlds import World
from node_agent.apps.mcep.channel import ChannelId, Log, Marker, Message
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.graph import CONSUMER, fan_out
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.range_query import RangeQuery
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.switching import Held, Hold, Order, Reconfigurator
from node_agent.apps.mcep.wiring import delivery, execution, range_query

BROKER = "broker"
"""Where the reconfigurator runs."""


@dataclass
class Outcome:
    delivered: list[Delivered] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    sent: int = 0
    """Events and logs on all streams."""
    stalled: bool = False
    """Whether the consumer never heard that the query ended."""
    skipped: int = 0
    processed: int = 0
    reused: int = 0


class Network:
    def __init__(self, world: World) -> None:
        self._world, query = world, world.query
        self._draws: dict[tuple[str, str], random.Random] = {}
        """By link, so that what one link carries changes nothing on the others."""
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._now = 0.0
        self._free: dict[tuple[str, str], float] = {}
        """By link, when its last message arrives."""
        self._crashed: set[str] = set()
        self._cut: dict[tuple[str, str], list[Callable[[], None]]] = {}
        servers = [f"server{number}" for number in range(world.servers)]
        self._servers = servers
        self._storages = {name: Storage(world.ttl, world.cell_m) for name in servers}
        self._ranges: dict[tuple[str, str], RangeQuery] = {
            (name, source.name): range_query(query, source, self._storages[name])
            for name in servers
            for source in query.graph.sources
        }
        self._heard = {name: dict.fromkeys(world.sensors, -math.inf) for name in servers}
        self.operators: dict[str, Execution] = {
            each.name: execution(query, each.name, servers, partial=world.partial)
            for each in query.graph.operators
        }
        self._consumer = delivery(query, servers, partial=world.partial)
        self.reconfigurator = Reconfigurator(
            query, servers, world.condition, self._count, world.plan(self._count_type, self._latest)
        )
        self._outcome = Outcome()

    def run(self) -> Outcome:
        world = self._world
        for event in world.events:
            server = self._servers[world.server_of(event)]
            self._at(event.t, lambda event=event, server=server: self._sense(event, server))  # type: ignore[misc]
        for t in world.beats:
            self._at(t, lambda t=t: self._beat(t))  # type: ignore[misc]
        for place, t in world.walk:
            self._at(t, lambda place=place, t=t: self._tell(self.reconfigurator.located(place, t)))  # type: ignore[misc]
        self._at(world.end, lambda: self._tell(self.reconfigurator.end(world.end)))
        for t, fault in world.faults:
            self._at(t, lambda fault=fault: self._fail(fault))  # type: ignore[misc]
        while self._agenda:
            self._now, _, action = heapq.heappop(self._agenda)
            action()
        outcome = self._outcome
        outcome.markers = self.reconfigurator.markers
        outcome.stalled = self._consumer.marker is None or self._consumer.marker.region is not None
        outcome.skipped = sum(each.skipped for each in self._ranges.values())
        outcome.processed = sum(each.counts.processed for each in self.operators.values())
        outcome.reused = sum(each.counts.reused for each in self.operators.values())
        return outcome

    def _at(self, t: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (t, self._number, action))

    def _transmit(self, sender: str, receiver: str, action: Callable[[], None]) -> None:
        """In order on each link, after a random time."""
        if sender in self._crashed:
            return
        link = (sender, receiver)
        if link in self._cut:
            self._cut[link].append(action)
            return
        draw = self._draws.get(link)
        if draw is None:
            draw = self._draws[link] = random.Random(f"{self._world.seed}/{sender}/{receiver}")
        arrival = max(self._free.get(link, 0.0), self._now + draw.expovariate(1 / self._world.delay))
        self._free[link] = arrival
        self._at(arrival, lambda: None if receiver in self._crashed else action())

    def _fail(self, fault: tuple[str, ...]) -> None:
        match fault:
            case ("crash", who):
                self._crashed.add(who)
            case ("cut", sender, receiver):
                self._cut.setdefault((sender, receiver), [])
            case ("mend", sender, receiver):
                for action in self._cut.pop((sender, receiver), []):
                    self._transmit(sender, receiver, action)

    def _sense(self, event: Event, server: str) -> None:
        def arrive() -> None:
            self._storages[server].add(event)

        self._transmit(event.source, server, arrive)

    def _beat(self, t: float) -> None:
        for sensor in self._world.sensors:
            for server in self._servers:
                self._transmit(sensor, server, lambda s=sensor, v=server: self._hear(s, v, t))  # type: ignore[misc]

    def _hear(self, sensor: str, server: str, t: float) -> None:
        self._heard[server][sensor] = t
        arrived = min(self._heard[server].values())
        storage = self._storages[server]
        for source in self._world.query.graph.sources:
            ranges = self._ranges[server, source.name]
            self._stream(server, source.name, ranges.progress(arrived))
        needed = min(
            self._ranges[server, each.name].needed_since() for each in self._world.query.graph.sources
        )
        storage.expire(arrived, needed)

    def _stream(self, server: str, source: str, messages: list[Message]) -> None:
        for stream, message in fan_out(self._world.query.graph.outputs[source], messages):
            self._send(server, stream.successor, ChannelId(source, server), message)

    def _send(self, sender: str, receiver: str, channel: ChannelId, message: Message) -> None:
        if isinstance(message, Event | Log):
            self._outcome.sent += 1
        self._transmit(sender, receiver, lambda: self._receive(receiver, channel, message))

    def _receive(self, receiver: str, channel: ChannelId, message: Message) -> None:
        if receiver == CONSUMER:
            self._outcome.delivered += self._consumer.receive(channel, message)
            return
        for stream, each in self.operators[receiver].receive(channel, message):
            self._send(receiver, stream.successor, ChannelId(receiver), each)

    def _tell(self, orders: Iterable[tuple[str, Order]]) -> None:
        for server, order in orders:
            self._transmit(BROKER, server, lambda s=server, o=order: self._obey(s, o))  # type: ignore[misc]

    def _obey(self, server: str, order: Order) -> None:
        sources = [each.name for each in self._world.query.graph.sources]
        if isinstance(order, Hold):
            held = Held(order.epoch, max(self._ranges[server, each].hold() for each in sources))
            self._transmit(server, BROKER, lambda: self._tell(self.reconfigurator.held(server, held)))
            return
        for source in sources:
            self._stream(server, source, self._ranges[server, source].switch(order.marker))

    def _count(self, regions: Iterable[Region], since: float, before: float) -> int:
        inside = list(regions)
        return sum(
            self._count_type(each.type, inside, since, before) for each in self._world.query.graph.sources
        )

    def _count_type(self, type: str, regions: Iterable[Region], since: float, before: float) -> int:
        """As an omniscient observer: servers need not have all of it yet."""
        return len(self._world.seen(type, list(regions), since, before))

    def _latest(self, type: str, region: Region, before: float, most: int) -> list[float]:
        times = [each.t for each in self._world.seen(type, [region], -math.inf, before)]
        return times[-most:] if most else []
