"""Sends a node's messages: when, in which order, and how packed (RFC 3626, sections 3.4, 5, 6.2, 9.1, 12.1).

Each interface has its HELLO interval; TC, MID, HNA and forwarded messages wait for the next HELLO.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from node_agent.olsr import greeting, hello, mpr, topology, validity, wire
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.counters import Counters
from node_agent.olsr.neighbourhood import Link, Neighbour, Neighbourhood
from node_agent.olsr.outbox import NEVER, Outbox
from node_agent.olsr.quality import BROKEN, Metric
from node_agent.olsr.routing import Routing

_FAR = 255
_FISHEYE = (2, 8, 2, 16, 2, 8, 2, _FAR)
_HURRIED = 0.25  # of an interval: how long urgent changes wait at most, and the least time between two TCs
_FAR_FIRST = 32  # first TCs of an interface that go everywhere, before the fisheye cycle begins
_LINK_TYPES = {"SYMMETRIC": hello.SYMMETRIC, "ASYMMETRIC": hello.ASYMMETRIC, "LOST": hello.LOST}


class Interface(NamedTuple):
    name: str
    address: int  # the first interface's is the node's main address
    mtu: int = 1500
    hardware: bytes = bytes(6)  # its hardware address


class Outgoing(NamedTuple):
    interface: int  # index
    data: bytes  # to be broadcast


class Schedule:
    """One interface's send times and outbox."""

    def __init__(self, mtu: int, packet_seqno: int) -> None:
        self.outbox = Outbox(mtu)
        self.packet_seqno = packet_seqno
        self.tcs = 0
        self.last_tc_ns = 0
        self.has_news = False  # the next TC announces an urgent change
        self.hello_ns = self.tc_ns = self.mid_ns = self.hna_ns = NEVER

    def next_ns(self) -> int:
        return min(self.hello_ns, self.tc_ns, self.mid_ns, self.hna_ns, self.outbox.due_ns)


class Speaker:
    def __init__(
        self,
        config: OlsrConfig,
        interfaces: Sequence[Interface],
        metric: Metric,
        neighbourhood: Neighbourhood,
        routing: Routing,
        counters: Counters,
        rng: random.Random,
        now: int,
    ) -> None:
        self.ansn = rng.randrange(0x10000)
        self._config = config
        self._addresses = [interface.address for interface in interfaces]
        self._greetings = [greeting.encode(interface.hardware) for interface in interfaces]
        self._metric = metric
        self._neighbourhood = neighbourhood
        self._routing = routing
        self._counters = counters
        self._rng = rng
        self._seqno = rng.randrange(0x10000)
        self._max_jitter = min(config.hello_interval, config.tc_interval)
        self._max_jitter_ns = int(self._max_jitter * 1e9)
        networks = [IPv4Network(text) for text in config.hna]
        self._hna = tuple((int(each.network_address), int(each.netmask)) for each in networks)
        self._advertised: list[wire.Neighbour] = []
        self._empty_until = 0
        self._relays_seen: tuple[int, ...] = ()
        self.schedules = [Schedule(interface.mtu, rng.randrange(0x10000)) for interface in interfaces]
        for schedule in self.schedules:
            schedule.hello_ns = now + self._random_ns(config.hello_interval)
            schedule.tc_ns = now + self._random_ns(config.tc_interval)
            if len(interfaces) > 1:
                schedule.mid_ns = now + self._random_ns(config.mid_interval)
            if self._hna:
                schedule.hna_ns = now + self._random_ns(config.hna_interval)
        self.next_ns = NEVER
        """When to call ``speak``."""
        self._note_next()

    def _note_next(self) -> None:
        self.next_ns = min([each.next_ns() for each in self.schedules])

    def forward(self, message: wire.Message, now: int, *, news: bool) -> None:
        """Forwards a message. ``news``: it changes routes and must not wait for a HELLO."""
        passed_on = wire.Message(
            message.kind,
            message.vtime,
            message.originator,
            message.ttl - 1,
            message.hops + 1,
            message.seqno,
            message.body,
        )
        for schedule in self.schedules:
            self._put(schedule, passed_on, now, news=news)

    def hurry(self, now: int) -> None:
        """Sends the next TC early, because an important link came or went (RFC 3626, section 9.3)."""
        spacing = int(_HURRIED * self._config.tc_interval * 1e9)
        for schedule in self.schedules:
            schedule.tc_ns = min(schedule.tc_ns, max(now, schedule.last_tc_ns + spacing))
            schedule.has_news = True
        self._note_next()

    def speak(self, now: int) -> list[Outgoing]:
        """Returns the packets that are due."""
        config = self._config
        packets: list[Outgoing] = []
        for index, schedule in enumerate(self.schedules):
            if schedule.tc_ns <= now:
                schedule.tc_ns = self._again(config.tc_interval, now)
                self._queue_tc(schedule, now)
            if schedule.mid_ns <= now:
                schedule.mid_ns = self._again(config.mid_interval, now)
                body = wire.encode_mid(wire.Mid(tuple(self._addresses[1:])))
                self._put(schedule, self._message(wire.MID, config.mid_validity, _FAR, body), now)
            if schedule.hna_ns <= now:
                schedule.hna_ns = self._again(config.hna_interval, now)
                body = wire.encode_hna(wire.Hna(self._hna))
                self._put(schedule, self._message(wire.HNA, config.hna_validity, _FAR, body), now)
            if schedule.hello_ns <= now:
                schedule.hello_ns = self._again(config.hello_interval, now)
                if self._metric.quick:
                    body = self._greetings[index]
                    self._put(schedule, self._message(greeting.GREETING, config.hello_validity, 1, body), now)
                packets.extend(self._send(index, self._hellos(index), now))
            elif schedule.outbox.due_ns <= now:
                packets.extend(self._send(index, [], now))
        self._note_next()
        return packets

    def farewell(self, now: int) -> list[Outgoing]:
        """Returns what waits to be sent, a TC and a HELLO on each interface, whatever is due."""
        packets: list[Outgoing] = []
        for index, schedule in enumerate(self.schedules):
            schedule.has_news = True
            self._queue_tc(schedule, now)
            packets.extend(self._send(index, self._hellos(index), now))
        return packets

    def _send(self, index: int, hellos: Sequence[wire.Message], now: int) -> Iterator[Outgoing]:
        schedule = self.schedules[index]
        for messages in schedule.outbox.take(hellos, now):
            schedule.packet_seqno = (schedule.packet_seqno + 1) & 0xFFFF
            self._counters.send(messages, self._addresses[0])
            yield Outgoing(index, wire.encode_packet(schedule.packet_seqno, messages))

    def _put(self, schedule: Schedule, message: wire.Message, now: int, *, news: bool = False) -> None:
        latest = now + self._max_jitter_ns
        if news:
            latest = now + self._random_ns(_HURRIED * self._max_jitter)
        elif schedule.hello_ns > latest:  # no HELLO in time: HELLOs are rarer than TCs
            latest = now + self._random_ns(self._max_jitter)
        if not schedule.outbox.put(message, latest, now):
            self._counters.dropped += 1
        elif schedule.outbox.due_ns < self.next_ns:
            self.next_ns = schedule.outbox.due_ns

    def _hellos(self, index: int) -> list[wire.Message]:
        self._choose_relays()
        config = self._config
        bodies = hello.compose(
            self._mentions(index),
            config.hello_interval,
            config.willingness,
            self.schedules[index].outbox.message_room,
        )
        kind = self._metric.hello_kind
        return [self._message(kind, config.hello_validity, 1, body) for body in bodies]

    def _mentions(self, index: int) -> Iterator[hello.Mention]:
        for link in self._neighbourhood.links[index].values():
            yield self._mention(_LINK_TYPES[link.status], link.neighbour, link.remote, link)
        if len(self.schedules) > 1:
            for neighbour, link in self._neighbourhood.symmetric():
                if all(each.interface != index for each in neighbour.links):
                    yield self._mention(hello.UNSPECIFIED, neighbour, neighbour.address, link)

    def _mention(self, link_type: int, neighbour: Neighbour, address: int, link: Link) -> hello.Mention:
        kind = hello.NOT_NEIGHBOUR
        if neighbour.best is not None:
            kind = hello.MPR_NEIGHBOUR if neighbour.is_mpr else hello.SYMMETRIC_NEIGHBOUR
        packed = self._metric.pack(link.quality, link.neighbour_quality)
        return link_type | kind << 2, wire.encode_neighbour(address, packed)

    def _choose_relays(self) -> None:
        neighbourhood = self._neighbourhood
        mains = self._routing.mains()
        seen = (neighbourhood.link_changes, neighbourhood.two_hop_changes, self._routing.alias_changes)
        if seen == self._relays_seen:
            return
        self._relays_seen = seen
        candidates = [
            mpr.Candidate(
                neighbour.address, neighbour.willingness, link.cost, _by_main(neighbour.two_hop.costs, mains)
            )
            for neighbour, link in neighbourhood.symmetric()
        ]
        select = mpr.by_cost if self._metric.measured else mpr.by_degree
        relays = select(candidates, self._config.mpr_coverage)
        for neighbour in neighbourhood.neighbours.values():
            neighbour.is_mpr = neighbour.address in relays

    def _queue_tc(self, schedule: Schedule, now: int) -> None:
        advertised = self._worth_advertising(now)
        news, schedule.has_news = schedule.has_news, False
        if advertised != self._advertised:
            self.ansn = (self.ansn + 1) & 0xFFFF
            if not advertised:
                # Others must learn that the edges are gone; a node that never had any sends nothing.
                self._empty_until = now + int(3e9 * self._config.tc_validity)
            self._advertised = advertised
        if not advertised and now >= self._empty_until:
            return
        ttl = _FAR
        if self._config.fisheye and not news and schedule.tcs >= _FAR_FIRST:
            ttl = _FISHEYE[(schedule.tcs - _FAR_FIRST) % len(_FISHEYE)]
        schedule.tcs += 1
        schedule.last_tc_ns = now
        kind = self._metric.tc_kind
        for tc in split_tc(self.ansn, advertised, schedule.outbox.message_room, self._metric.measured):
            body = wire.encode_tc(tc, kind)
            self._put(schedule, self._message(kind, self._config.tc_validity, ttl, body), now, news=news)

    def _worth_advertising(self, now: int) -> list[wire.Neighbour]:
        redundancy = self._config.tc_redundancy
        return sorted(
            wire.Neighbour(neighbour.address, self._metric.pack(link.quality, link.neighbour_quality))
            for neighbour, link in self._neighbourhood.symmetric()
            if link.cost < BROKEN
            and (redundancy == 2 or neighbour.selector_until > now or (redundancy == 1 and neighbour.is_mpr))
        )

    def _message(self, kind: int, valid_for: float, ttl: int, body: bytes) -> wire.Message:
        self._seqno = (self._seqno + 1) & 0xFFFF
        vtime = validity.encode(valid_for)
        return wire.Message(kind, vtime, self._addresses[0], ttl, 0, self._seqno, body)

    def _again(self, interval: float, now: int) -> int:
        return now + int(interval * (1 - self._config.jitter * self._rng.random()) * 1e9)

    def _random_ns(self, seconds: float) -> int:
        return int(self._rng.random() * seconds * 1e9)


def _by_main(costs: Mapping[int, int], mains: Mapping[int, int]) -> Mapping[int, int]:
    if not mains:
        return costs
    cheapest: dict[int, int] = {}
    for address, cost in costs.items():
        main = mains.get(address, address)
        cheapest[main] = min(cost, cheapest.get(main, cost))
    return cheapest


def split_tc(ansn: int, advertised: list[wire.Neighbour], room: int, measured: bool) -> Iterator[wire.Tc]:
    fitting = (room - 4) // (8 if measured else 4)
    for start in range(0, max(1, len(advertised)), fitting):
        part = advertised[start : start + fitting]
        lower = upper = topology.WHOLE if measured else 0
        if measured and start:
            lower = topology.border(advertised[start - 1].address, part[0].address)
        if measured and start + fitting < len(advertised):
            upper = topology.border(part[-1].address, advertised[start + fitting].address)
        yield wire.Tc(ansn, lower, upper, tuple(part))
