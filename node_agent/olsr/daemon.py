"""The OLSR daemon as a state machine without I/O: takes packets and the time, returns packets and routes.

It accepts messages as far as they concern its ad-hoc network, and counts refusals by reason: ``malformed``,
``outside_prefix``, ``not_member``, ``identity`` (a node speaks for another), ``hna`` (a network that is not
accepted here), ``full`` (an entry was evicted to make room).
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from node_agent.manet.membership import ANYBODY, Manet, is_host
from node_agent.model.link_layer import LinkLayer, Readings
from node_agent.olsr import counters as counting
from node_agent.olsr import duplicates, greeting, quality, snapshot, validity, wire
from node_agent.olsr.accepted_networks import AcceptedNetworks, announced_network
from node_agent.olsr.announced import Announced
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.counters import Counters
from node_agent.olsr.duplicates import DuplicateSet
from node_agent.olsr.neighbourhood import Link, Neighbourhood
from node_agent.olsr.outbox import MOST_MTU
from node_agent.olsr.routing import Route, Routes, Routing
from node_agent.olsr.sensitivity import Sensitivity
from node_agent.olsr.speaker import Interface, Outgoing, Speaker
from node_agent.olsr.topology import Topology
from node_agent.olsr.view import Costs, View

__all__ = ["Interface", "Olsr", "Outgoing", "Route"]

_SECOND = 1_000_000_000
_NEVER = 1 << 62
_LOOK_NS = 250_000_000  # how often the radio is asked about its links
_HELLOS = (wire.HELLO, wire.LQ_HELLO)
_LOCAL = (*_HELLOS, greeting.GREETING)  # not for further than one hop
_MOST_BYTES = MOST_MTU - 28


class Olsr:
    def __init__(
        self,
        config: OlsrConfig,
        interfaces: Sequence[Interface],
        rng: random.Random,
        now_ns: int,
        manet: Manet = ANYBODY,
        link_layer: LinkLayer | None = None,
    ) -> None:
        """``link_layer``: what the radio knows of its links, for metrics that use it."""
        if not interfaces:
            raise ValueError("OLSR needs at least one interface")
        self.config = config
        self.interfaces = tuple(interfaces)
        self.counters = Counters()
        self.main_address = interfaces[0].address
        own = tuple(interface.address for interface in interfaces)
        self._own = frozenset(own)
        self._manet = manet
        self._metric = quality.metric(config.quality)
        self._longest_ns = int(config.longest_validity * 1e9)
        hold_ns = int(config.hello_validity * 1e9)
        self._neighbourhood = Neighbourhood(own, self._metric, manet, hold_ns, self._longest_ns)
        self._topology = Topology(self._metric, manet, self._longest_ns)
        self._accepted = AcceptedNetworks(config.accept_networks)
        self._aliases = Announced[int]()
        self._networks = Announced[tuple[int, int]]()
        self._duplicates = DuplicateSet()
        self._sets = (
            self._neighbourhood,
            self._topology,
            self._aliases,
            self._networks,
            self._duplicates,
        )
        self._evicted = 0
        self._routing = Routing(
            own,
            self._neighbourhood,
            self._topology,
            self._aliases,
            self._networks,
            manet,
            self._accepted,
        )
        self._speaker = Speaker(
            config, interfaces, self._metric, self._neighbourhood, self._routing, self.counters, rng, now_ns
        )
        self.urgent_changes = 0
        """Grows whenever a link or an edge that routes depend on has come or gone."""
        self._started_ns = now_ns
        self._tick_ns = now_ns + _SECOND if self._metric.measured else _NEVER
        self._link_layer = link_layer
        self._sensitivity = Sensitivity()
        self._look_ns = now_ns + _LOOK_NS if self._metric.quick else _NEVER

    def receive(self, data: bytes, interface: int, sender: int, now_ns: int) -> None:
        """Processes a packet. Never raises because of its content; refusals are counted."""
        link = self._neighbourhood.links[interface].get(sender)
        if link is None and (sender in self._own or not self._may_speak(sender, sender)):
            return
        try:
            packet = _parse(data)
        except wire.Malformed:
            self.refuse(sender, "malformed")
            return
        self.counters.receive(packet.tally)
        if link is not None:
            self._neighbourhood.note_packet(link, packet.seqno, now_ns)
            if link.symmetric_until > now_ns and (unseen := self._duplicates.unseen(packet.keys)):
                self._take_floods(link, packet.floods, unseen, now_ns)
        for message in packet.hellos:
            if message.kind == self._metric.hello_kind and message.originator not in self._own:
                self._take_hello(interface, sender, packet.seqno, message, now_ns)
        if self._metric.quick and (packet.greeting is not None or packet.hellos):
            self._take_greeting(interface, sender, packet.greeting, now_ns)

    def refuse(self, sender: int, reason: str, count: int = 1) -> None:
        self.counters.refusals.add("olsr", wire.dotted(sender), reason, count)

    def next_wake_ns(self) -> int:
        """Returns when to call ``wake``. Ask again after each ``receive`` and ``wake``."""
        links, edges, aliases, networks, duplicates = self._sets
        return min(
            self._tick_ns,
            self._look_ns,
            self._speaker.next_ns,
            links.next_expiry,
            edges.next_expiry,
            aliases.next_expiry,
            networks.next_expiry,
            duplicates.next_expiry,
        )

    def wake(self, now_ns: int) -> list[Outgoing]:
        """Does what is due: expires entries, measures links, sends messages."""
        self._expire(now_ns)
        if now_ns >= self._tick_ns:
            self._neighbourhood.tick(now_ns)
            if self._neighbourhood.changed_links:
                self._notice_links(now_ns)
            self._tick_ns = max(self._tick_ns + _SECOND, now_ns - _SECOND)
        if now_ns >= self._look_ns:
            self._look(now_ns)
            self._look_ns = max(self._look_ns + _LOOK_NS, now_ns)
        return self._speaker.speak(now_ns)

    def farewell(self, now_ns: int) -> list[Outgoing]:
        """Gives up all links, and returns packets that say so: a TC and HELLOs without neighbours, as olsrd
        sends at its end. May be repeated, in case the first ones get lost; let it receive nothing more.
        """
        self._neighbourhood.lose_all(now_ns)
        return self._speaker.farewell(now_ns)

    def routes(self, now_ns: int) -> Mapping[int, Route]:
        """Returns host routes by destination: main addresses and aliases."""
        return self.current_routes(now_ns).hosts()

    def network_routes(self, now_ns: int) -> Mapping[tuple[int, int], Route]:
        """Returns routes to the networks that others announce, by network and netmask."""
        return self.current_routes(now_ns).nets()

    def current_routes(self, now_ns: int) -> Routes:
        """Returns the current routes, computed when they are read; the same object if nothing has changed."""
        self._expire(now_ns)
        return self._routing.current_routes()

    def view(self, now_ns: int) -> View:
        self._expire(now_ns)
        return snapshot.take(
            now_ns,
            self._started_ns,
            self.interfaces,
            self._neighbourhood,
            self._topology,
            self._aliases,
            self._networks,
            self._routing.current_routes(),
            self._speaker,
        )

    def costs(self, now_ns: int) -> Costs:
        self._expire(now_ns)
        self._routing.current_routes()
        return snapshot.costs(self.interfaces, self._neighbourhood, self._topology, self._aliases)

    def _expire(self, now: int) -> None:
        for each in self._sets:
            if each.next_expiry <= now:
                each.expire(now)
        if self._neighbourhood.changed_links:
            self._notice_links(now)

    def _look(self, now: int) -> None:
        readings: Readings = {}
        if self._link_layer is not None:
            readings = self._link_layer.read()
            self._sensitivity.known = self._link_layer.sensitivity_dbm
        self._sensitivity.forget()
        self._neighbourhood.observe(readings, self._sensitivity, now)
        if self._neighbourhood.changed_links:
            self._notice_links(now)

    def _take_greeting(self, interface: int, sender: int, body: bytes | None, now: int) -> None:
        """``body``: None if a packet has a HELLO and no greeting."""
        link = self._neighbourhood.links[interface].get(sender)
        if link is None:
            return
        if body is None:
            self._neighbourhood.miss_greeting(link, now)
            return
        try:
            if not self._neighbourhood.greet(link, greeting.decode(body), now):
                self.refuse(sender, "identity")
        except wire.Malformed:
            self.refuse(sender, "malformed")

    def _take_hello(
        self, interface: int, sender: int, packet_seqno: int, message: wire.Message, now: int
    ) -> None:
        link = self._neighbourhood.links[interface].get(sender)
        if link is None or link.neighbour.address != message.originator:
            if not self._may_speak(message.originator, sender):
                return
            if self._manet.members and message.originator != sender:
                self.refuse(sender, "identity")
                return
        try:
            self._neighbourhood.receive_hello(interface, sender, packet_seqno, message, now)
        except wire.Malformed:
            self.refuse(sender, "malformed")
        self._count_evicted(sender)
        if self._neighbourhood.changed_links:
            self._notice_links(now)

    def _may_speak(self, originator: int, sender: int) -> bool:
        """Counts a refusal for ``sender``, who delivered the message."""
        reason = self._manet.refusal(originator)
        if reason:
            self.refuse(sender, reason)
        return not reason

    def _count_evicted(self, sender: int) -> None:
        links, edges, aliases, networks, duplicates = self._sets
        evicted = links.evicted + edges.evicted + aliases.evicted + networks.evicted + duplicates.evicted
        if evicted != self._evicted:
            self.refuse(sender, "full", evicted - self._evicted)
            self._evicted = evicted

    def _notice_links(self, now: int) -> None:
        for neighbour, cost in self._neighbourhood.changed_links:
            before, after = {neighbour.address: cost}, {}
            if neighbour.best is not None and neighbour.best.cost < quality.BROKEN:
                before, after = {}, {neighbour.address: neighbour.best.cost}
            if self._routing.is_urgent(before, after):
                self.urgent_changes += 1
                self._speaker.hurry(now)
        self._neighbourhood.changed_links.clear()

    def _notice_edges(self) -> bool:
        """Returns whether a changed edge affects our routes."""
        changed = self._topology.changed_edges
        news = any(starmap(self._routing.is_urgent, changed))
        changed.clear()
        self.urgent_changes += news
        return news

    def _take_floods(
        self, link: Link, floods: Mapping[int, wire.Message], unseen: frozenset[int], now: int
    ) -> None:
        sender = link.remote
        selected = link.neighbour.selector_until > now
        known = self._manet.known
        taken = [
            (key, message)
            for key, message in floods.items()
            if key in unseen and (message.originator in known or self._may_speak(message.originator, sender))
        ]
        self._duplicates.remember([key for key, _ in taken], now)
        for _, message in taken:
            self._take_flood(message, sender, selected, now)
        self._count_evicted(sender)

    def _take_flood(self, message: wire.Message, sender: int, selected: bool, now: int) -> None:
        """Processes a flooded message. ``selected``: the neighbour it comes from has chosen us as relay."""
        if message.originator in self._own or message.ttl == 0:
            return
        try:
            if message.kind == self._metric.tc_kind:
                self._topology.receive_tc(message, now, sender)
            elif message.kind == wire.MID:
                self._take_aliases(message, sender, now)
            elif message.kind == wire.HNA:
                self._take_networks(message, sender, now)
        except wire.Malformed:
            self.refuse(sender, "malformed")
            return
        news = bool(self._topology.changed_edges) and self._notice_edges()
        if selected and 2 <= message.ttl <= 255 - message.hops:
            self._speaker.forward(message, now, news=news)

    def _take_aliases(self, message: wire.Message, sender: int, now: int) -> None:
        aliases = wire.decode_mid(message).aliases
        taken = [alias for alias in aliases if self._manet.belongs(alias)]
        if len(taken) < len(aliases):
            self.refuse(sender, "outside_prefix")
        self._aliases.update(message.originator, taken, self._until(message, now))

    def _take_networks(self, message: wire.Message, sender: int, now: int) -> None:
        """Stores all networks, for display; only accepted ones get routes."""
        entries = wire.decode_hna(message).networks
        networks = [network for entry in entries if (network := announced_network(*entry))]
        if len(networks) < len(entries) or not all(starmap(self._accepted.accepts, networks)):
            self.refuse(sender, "hna")
        self._networks.update(message.originator, networks, self._until(message, now))

    def _until(self, message: wire.Message, now: int) -> int:
        return now + min(validity.NANOSECONDS[message.vtime], self._longest_ns)


class _ParsedPacket(NamedTuple):
    seqno: int
    hellos: tuple[wire.Message, ...]
    floods: Mapping[int, wire.Message]  # by duplicate key
    keys: frozenset[int]  # of the floods
    tally: counting.Tally
    greeting: bytes | None  # the body of our own announcement


@lru_cache(maxsize=128)
def _parse(data: bytes) -> _ParsedPacket:
    """Parses a packet. Cached, because in virtual time all receivers of a broadcast are in this process and
    get the same bytes.
    """
    if len(data) > _MOST_BYTES:
        raise wire.Malformed(f"{len(data)} bytes are more than a packet has")
    seqno, messages = wire.decode_packet(data)
    somebodys = [each for each in messages if is_host(each.originator)]
    floods: dict[int, wire.Message] = {}
    for each in somebodys:
        if each.kind not in _LOCAL:
            floods.setdefault(duplicates.key(each), each)
    return _ParsedPacket(
        seqno,
        hellos=tuple([each for each in somebodys if each.kind in _HELLOS and each.hops == 0]),
        floods=floods,
        keys=frozenset(floods),
        tally=counting.tally(messages),
        greeting=next((each.body for each in somebodys if each.kind == greeting.GREETING), None),
    )
