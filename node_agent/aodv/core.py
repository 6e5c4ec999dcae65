"""AODV without I/O: takes messages, packets and times, returns actions (RFC 3561, section 6).

Addresses are numbers. Packets are of any type; the core only holds them until there is a route. Every call
returns what the caller must do now. The caller must call ``wake`` at ``next_wake_ns``; extra calls do no
harm.

The core refuses messages about addresses outside the ad-hoc network, and counts refusals by reason:
``malformed``, ``outside_prefix``, ``not_member``, ``sequence`` (a number far ahead of the known one),
``rate`` (more requests than a node may send), ``full`` (an entry was evicted to make room).
"""

import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Generic, TypeVar

from node_agent.aodv import wire
from node_agent.aodv.actions import Action, Outbox
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.counters import Counters
from node_agent.aodv.holding import HeldPackets
from node_agent.aodv.limits import RateLimit, RateLimits, SeenRequests
from node_agent.aodv.neighbours import Neighbours
from node_agent.aodv.search import Search, Searches
from node_agent.aodv.table import Route, RouteTable, after, ahead, newer, newest
from node_agent.aodv.wire import Acknowledgement, Broken, Error, Message, Reply, Request
from node_agent.manet.membership import Manet

P = TypeVar("P")
NEVER_NS = 1 << 62
_MOST_HOPS = 255  # the largest count that a message can hold
_LONGEST_LIFETIME = 10  # limit of granted lifetimes, in own route timeouts: messages allow seven weeks
_PLAUSIBLE = 1 << 24  # how far a sequence number may be ahead: a node's own grow by 15 a second
_PASSED_ON = 200  # requests a second that are passed on for one neighbour
MOST_SEARCHES = 1024


def sequence_at(now_ns: int) -> int:
    """Returns a node's first sequence number, above all it used before a restart with the same clock.

    The clock part grows by 15 a second; a node uses at most 10, because it sends no more requests.
    """
    return (now_ns >> 26) % (1 << 32)


class Aodv(Generic[P]):
    """``sequence``: the node's first sequence number; see ``sequence_at``.

    Without a ``manet`` the core accepts messages from every address.
    """

    def __init__(
        self,
        config: AodvConfig,
        address: int,
        rng: random.Random,
        now_ns: int,
        sequence: int = 0,
        manet: Manet | None = None,
    ) -> None:
        self.address = address
        self.config = config
        self.counters = Counters()
        self.table = RouteTable(_ns(config.delete_period))
        self._rng = rng
        self._sequence = sequence
        self._request_id = sequence
        self._active_ns = _ns(config.active_route_timeout)
        self._longest_ns = _LONGEST_LIFETIME * _ns(config.my_route_timeout)
        self._sends_hellos = config.detection == "hello"
        self._neighbours = Neighbours(
            _ns(config.silence), _ns(config.next_hop_wait), _ns(config.blacklist_timeout)
        )
        self._held = HeldPackets[P](config.held_packets, _ns(config.held_seconds))
        self._searches = Searches(config)
        self._seen = SeenRequests(_ns(config.path_discovery_time))
        self._errors = RateLimit(config.rerr_rate_limit)
        self._manet = manet
        self._evicted = 0
        # An honest node keeps its own request rate limit; twice the limit allows for bursts.
        self._by_originator = RateLimits(2 * config.rreq_rate_limit)
        self._by_neighbour = RateLimits(_PASSED_ON)
        self._out = Outbox[P](self.counters)
        self._hello_ns = (
            now_ns + round(rng.random() * _ns(config.hello_interval)) if self._sends_hellos else NEVER_NS
        )
        self._wake_ns = self._hello_ns

    @property
    def held(self) -> int:
        """Returns the number of packets that wait for a route."""
        return len(self._held)

    def valid_routes(self, now_ns: int) -> list[Route]:
        return [route for route in self.table if route.valid and route.expires_ns > now_ns]

    def next_wake_ns(self) -> int:
        return self._wake_ns

    # Calls on behalf of packets.

    def next_hop(self, destination: int, source: int, previous: int | None, now_ns: int) -> int | None:
        """Returns the next hop for a packet that is sent now, and keeps
        its routes alive in both directions."""
        route = self.table.valid(destination, now_ns)
        if route is None:
            return None
        self._use(route, now_ns)
        if source != self.address:
            back = self.table.valid(source, now_ns)
            if back is not None:
                self._use(back, now_ns)
                back.add_precursor(route.next_hop)
                previous = previous or back.next_hop
            if previous is not None:
                route.add_precursor(previous)
        return route.next_hop

    def keep_alive(self, other: int, now_ns: int) -> None:
        """Keeps the route to ``other`` alive: a packet came from there or went there."""
        if (route := self.table.valid(other, now_ns)) is not None:
            self._use(route, now_ns)

    def originate(self, packet: P, destination: int, now_ns: int) -> list[Action[P]]:
        """Sends a packet of this node's own, now or as soon as there is a route."""
        next_hop = self.next_hop(destination, self.address, None, now_ns)
        if next_hop is not None:
            self._out.forward(packet, next_hop)
            return self._out.take()
        for pushed_out in self._held.add(destination, packet, now_ns):
            self._out.drop(pushed_out, "buffer_full")
        self._wake_by(now_ns + _ns(self.config.held_seconds))
        return self.seek(destination, now_ns)

    def seek(self, destination: int, now_ns: int, renew: bool = False) -> list[Action[P]]:
        """Starts a search if there is no route and no search yet.

        ``renew``: also if the route ends soon. Then only the destination may answer, because other nodes know
        nothing newer.
        """
        route = self.table.valid(destination, now_ns)
        ends = route is None or (renew and route.expires_ns - now_ns < self._active_ns)
        if destination in self._searches or not ends or not self._may_seek(destination):
            return self._out.take()
        self.table.expire(now_ns)  # an expired route must ask for a newer sequence number
        known = self.table.get(destination)
        hops = None if known is None else known.hops
        only = self.config.destination_only or route is not None
        self._ask(self._searches.begin(destination, hops, only, now_ns), now_ns)
        return self._out.take()

    def unroutable(self, destination: int, source: int, now_ns: int) -> list[Action[P]]:
        """Sends an RERR to a neighbour that sent a packet for ``destination``, to which there is no route."""
        self.counters.drops["unroutable"] += 1
        route = self.table.get(destination)
        if route is not None and not route.valid:
            self.table.keep_in_memory(route, now_ns)
        sequence = route.sequence if route is not None else None
        back = self.table.valid(source, now_ns)
        self._error([Broken(destination, sequence or 0)], None if back is None else back.next_hop, now_ns)
        return self._out.take()

    def link_failed(self, neighbour: int, now_ns: int, was_reply: bool = False) -> list[Action[P]]:
        """Handles a packet for ``neighbour`` that the link layer gave up."""
        if was_reply:
            self._neighbours.blacklist(neighbour, now_ns)
        self._break_link(neighbour, now_ns)
        return self._out.take()

    # Input from the network and from the clock.

    def receive(self, data: bytes, sender: int, ttl: int, now_ns: int) -> list[Action[P]]:
        """Handles a received message. Refused messages are counted and ignored."""
        if sender == self.address or self._refuses(sender, sender):
            return []
        try:
            message, kind, named = _read(data)
        except wire.Malformed:
            self.refuse(sender, "malformed")
            return []
        for address in named:
            if self._refuses(address, sender):
                return []
        self.counters.received(kind, len(data))
        self._neighbours.heard(sender, now_ns)
        match message:
            case Request():
                self._on_request(message, sender, ttl, now_ns)
            case Reply():
                self._on_reply(message, sender, now_ns)
            case Error():
                self._on_error(message, sender, now_ns)
            case Acknowledgement():
                self._neighbours.answered(sender)
        if self.table.evicted != self._evicted:
            self.refuse(sender, "full", self.table.evicted - self._evicted)
            self._evicted = self.table.evicted
        return self._out.take()

    def refuse(self, sender: int, reason: str, count: int = 1) -> None:
        self.counters.refusals.add("aodv", wire.dotted(sender), reason, count)

    def _refuses(self, address: int, sender: int) -> bool:
        """Counts and reports a refusal if ``address``, named in a message of ``sender``, is not allowed."""
        if self._manet is None or address in self._manet.known:
            return False
        reason = self._manet.refusal(address)
        if reason:
            self.refuse(sender, reason)
        return bool(reason)

    def _may_seek(self, destination: int) -> bool:
        inside = self._manet is None or self._manet.belongs(destination)
        return inside and len(self._searches) < MOST_SEARCHES

    def wake(self, now_ns: int) -> list[Action[P]]:
        self._out.due(now_ns)
        self._neighbours.expire(now_ns)
        if self._sends_hellos:
            for neighbour in sorted(self._next_hops_in_use(now_ns)):
                if self._neighbours.silent_at_ns(neighbour) <= now_ns:
                    self._break_link(neighbour, now_ns)
        self.table.expire(now_ns)
        for packet in self._held.take_expired(now_ns):
            self._out.drop(packet, "too_old")
        for search in self._searches.due(now_ns):
            if self._searches.widen(search):
                self._ask(search, now_ns)
            else:
                for packet in self._held.take(search.destination):
                    self._out.drop(packet, "no_route")
        if self._hello_ns <= now_ns:
            self._send_hello(now_ns)
        self._wake_ns = self._next_deadline_ns(now_ns)
        return self._out.take()

    # Route discovery.

    def _ask(self, search: Search, now_ns: int) -> None:
        allowed = self._searches.may_ask(search, now_ns)
        self._wake_by(search.due_ns)
        if not allowed:
            return
        self._sequence = after(self._sequence)
        self._request_id = after(self._request_id)
        known = self.table.get(search.destination)
        request = Request(
            self._request_id,
            0,
            search.destination,
            None if known is None else known.sequence,
            self.address,
            self._sequence,
            self.config.gratuitous,
            search.destination_only,
        )
        self._out.send(request, None, search.ring.ttl)

    def _learn(
        self, destination: int, next_hop: int, hops: int, sequence: int | None, until_ns: int, now_ns: int
    ) -> Route | None:
        route = self.table.learn(destination, next_hop, hops, sequence, until_ns)
        if route is not None:
            self._wake_by(route.expires_ns)
            if self._searches.end(destination):
                self._use(route, now_ns)
                for packet in self._held.take(destination):
                    self._out.forward(packet, route.next_hop)
        return route

    def _on_request(self, request: Request, sender: int, ttl: int, now_ns: int) -> None:
        if request.originator == self.address or request.hops >= _MOST_HOPS:
            return
        if self._neighbours.is_blacklisted(sender, now_ns):
            return
        self._learn(sender, sender, 1, None, now_ns + self._active_ns, now_ns)
        if not self._seen.is_new(request.originator, request.id, now_ns):
            return
        if self._is_too_far_ahead(request.originator, request.originator_sequence, sender):
            return
        hops = request.hops + 1
        traversal = self.config.net_traversal_time - hops * self.config.node_traversal_time
        until_ns = now_ns + max(_ns(2 * traversal), self._active_ns)
        self._learn(request.originator, sender, hops, request.originator_sequence, until_ns, now_ns)
        back = self.table.valid(request.originator, now_ns)
        if back is None:
            return
        if request.destination == self.address:
            self._answer(request, back, now_ns)
            return
        route = self.table.get(request.destination)
        if self._may_answer(request, route, sender, now_ns):
            assert route is not None and route.sequence is not None
            self._answer_for(request, route, route.sequence, back, now_ns)
        elif ttl > 1 and self._may_pass_on(request.originator, sender, now_ns):
            self._pass_on(request, hops, route, ttl - 1, now_ns)

    def _is_too_far_ahead(self, destination: int, sequence: int, sender: int) -> bool:
        """Refuses implausible sequence numbers: with one, an attacker could
        make others ignore the node's real ones."""
        known = self.table.get(destination)
        if known is None or known.sequence is None or ahead(sequence, known.sequence) <= _PLAUSIBLE:
            return False
        self.refuse(sender, "sequence")
        return True

    def _may_pass_on(self, originator: int, sender: int, now_ns: int) -> bool:
        allowed = self._by_originator.take(originator, now_ns) and self._by_neighbour.take(sender, now_ns)
        if not allowed:
            self.refuse(sender, "rate")
        return allowed

    def _answer(self, request: Request, back: Route, now_ns: int) -> None:
        wanted = request.destination_sequence
        if wanted is not None and ahead(wanted, self._sequence) <= _PLAUSIBLE:
            self._sequence = newest(wanted, self._sequence)
        lifetime = round(self.config.my_route_timeout * 1000)
        self._reply(Reply(0, self.address, self._sequence, request.originator, lifetime), back, now_ns)

    def _may_answer(self, request: Request, route: Route | None, sender: int, now_ns: int) -> bool:
        """Says whether this node may answer for another: its route must be at least as new as asked for, and
        not lead back to the sender.
        """
        if request.destination_only or route is None or not route.valid or route.expires_ns <= now_ns:
            return False
        if route.sequence is None or route.next_hop == sender:
            return False
        wanted = request.destination_sequence
        return wanted is None or not newer(wanted, route.sequence)

    def _answer_for(self, request: Request, route: Route, sequence: int, back: Route, now_ns: int) -> None:
        route.add_precursor(back.next_hop)
        back.add_precursor(route.next_hop)
        lifetime = _ms_left(route, now_ns)
        self._reply(
            Reply(route.hops, route.destination, sequence, request.originator, lifetime), back, now_ns
        )
        if request.gratuitous and back.sequence is not None:
            # The destination will want to answer the originator: this saves it a search.
            lifetime = _ms_left(back, now_ns)
            unasked = Reply(back.hops, request.originator, back.sequence, request.destination, lifetime)
            self._reply(unasked, route, now_ns)

    def _pass_on(self, request: Request, hops: int, route: Route | None, ttl: int, now_ns: int) -> None:
        wanted = request.destination_sequence
        if route is not None and route.sequence is not None:
            wanted = route.sequence if wanted is None else newest(wanted, route.sequence)
        when_ns = now_ns + round(self._rng.random() * _ns(self.config.jitter))
        self._out.pass_on_later(request._replace(hops=hops, destination_sequence=wanted), ttl, when_ns)
        self._wake_by(when_ns)

    def _on_reply(self, reply: Reply, sender: int, now_ns: int) -> None:
        if reply.is_hello:
            if reply.destination == sender:
                self._on_hello(reply, now_ns)
            return
        self._learn(sender, sender, 1, None, now_ns + self._active_ns, now_ns)
        if reply.acknowledge:
            self._out.send(Acknowledgement(), sender, 1)
        if reply.destination == self.address or reply.hops >= _MOST_HOPS:
            return
        if self._is_too_far_ahead(reply.destination, reply.destination_sequence, sender):
            return
        until_ns = self._granted_ns(reply, now_ns)
        self._learn(reply.destination, sender, reply.hops + 1, reply.destination_sequence, until_ns, now_ns)
        route = self.table.valid(reply.destination, now_ns)
        back = self.table.valid(reply.originator, now_ns)
        if reply.originator == self.address or route is None or route.sequence is None or back is None:
            return
        self._use(route, now_ns)
        route.add_precursor(back.next_hop)
        back.add_precursor(route.next_hop)
        if (toward := self.table.get(route.next_hop)) is not None:
            toward.add_precursor(back.next_hop)
        # Pass on our own route: it is as good as the received one, or better.
        passed_on = Reply(
            route.hops, route.destination, route.sequence, reply.originator, _ms_left(route, now_ns)
        )
        self._reply(passed_on, back, now_ns, forwarded=True)

    def _on_hello(self, hello: Reply, now_ns: int) -> None:
        neighbour, until_ns = hello.destination, self._granted_ns(hello, now_ns)
        if self._is_too_far_ahead(neighbour, hello.destination_sequence, neighbour):
            return
        known = self.table.get(neighbour)
        fresh = known is None or known.sequence is None or newer(hello.destination_sequence, known.sequence)
        sequence = hello.destination_sequence if fresh else None
        self._learn(neighbour, neighbour, 1, sequence, until_ns, now_ns)

    def _reply(self, reply: Reply, back: Route, now_ns: int, forwarded: bool = False) -> None:
        self._use(back, now_ns)
        if self._sends_hellos:
            reply = reply._replace(acknowledge=True)
            self._neighbours.expects_answer(back.next_hop, now_ns)
            self._wake_by(now_ns + _ns(self.config.next_hop_wait))
        self._out.send(reply, back.next_hop, self.config.net_diameter, forwarded)

    # Route loss.

    def _on_error(self, error: Error, sender: int, now_ns: int) -> None:
        if error.no_delete:
            return
        lost = []
        for destination, sequence in error.broken:
            route = self.table.valid(destination, now_ns)
            if route is not None and route.next_hop == sender and destination != sender:
                if sequence and self._is_too_far_ahead(destination, sequence, sender):
                    sequence = 0
                self.table.invalidate(route, now_ns, sequence or None)
                lost.append(route)
        self._notify_precursors(lost, now_ns, forwarded=True)

    def _break_link(self, neighbour: int, now_ns: int) -> None:
        lost = [route for route in self.table if route.valid and route.next_hop == neighbour]
        for route in lost:
            self.table.invalidate(route, now_ns)
        self._notify_precursors(lost, now_ns)

    def _notify_precursors(self, lost: Iterable[Route], now_ns: int, forwarded: bool = False) -> None:
        affected = [route for route in lost if route.precursors]
        upstream = set[int]().union(*(route.precursors for route in affected))
        broken = [Broken(route.destination, route.sequence or 0) for route in affected]
        for route in affected:
            route.precursors.clear()
        if upstream:
            self._error(broken, upstream.pop() if len(upstream) == 1 else None, now_ns, forwarded)

    def _error(self, broken: list[Broken], to: int | None, now_ns: int, forwarded: bool = False) -> None:
        for start in range(0, len(broken), wire.MAX_BROKEN):
            if self._errors.free_at_ns(now_ns) > now_ns:
                self.counters.suppressed += 1
                continue
            self._errors.take(now_ns)
            self._out.send(Error(tuple(broken[start : start + wire.MAX_BROKEN])), to, 1, forwarded)

    # Route use.

    def _use(self, route: Route, now_ns: int) -> None:
        until_ns = now_ns + self._active_ns
        route.in_use_until_ns = until_ns
        if route.expires_ns < until_ns:
            route.expires_ns = until_ns
        if route.next_hop != route.destination:
            neighbour = self.table.get(route.next_hop)
            if neighbour is not None and neighbour.valid and neighbour.expires_ns < until_ns:
                neighbour.expires_ns = until_ns

    def _next_hops_in_use(self, now_ns: int) -> set[int]:
        return {route.next_hop for route in self.table if route.valid and route.in_use_until_ns > now_ns}

    def _send_hello(self, now_ns: int) -> None:
        interval_ns = _ns(self.config.hello_interval)
        # Early by a random amount, never late: neighbours count silence in whole intervals.
        self._hello_ns = now_ns + interval_ns - round(self._rng.random() * interval_ns / 10)
        if self._next_hops_in_use(now_ns):
            lifetime = round(self.config.silence * 1000)
            self._out.send(Reply(0, self.address, self._sequence, self.address, lifetime), None, 1)

    # Helpers.

    def _next_deadline_ns(self, now_ns: int) -> int:
        deadlines = [self._hello_ns, *[route.expires_ns for route in self.table]]
        if self._sends_hellos:
            deadlines += [self._neighbours.silent_at_ns(each) for each in self._next_hops_in_use(now_ns)]
        for moment in (
            self._out.next_due_ns(),
            self._searches.next_due_ns(),
            self._held.next_expiry_ns(),
            self._neighbours.next_answer_ns(),
        ):
            if moment is not None:
                deadlines.append(moment)
        return min(deadlines)

    def _granted_ns(self, reply: Reply, now_ns: int) -> int:
        return now_ns + min(reply.lifetime * 1_000_000, self._longest_ns)

    def _wake_by(self, when_ns: int) -> None:
        if when_ns < self._wake_ns:
            self._wake_ns = when_ns


@lru_cache(maxsize=128)
def _read(data: bytes) -> tuple[Message, str, tuple[int, ...]]:
    """Returns a message, its kind, and the addresses it names. Cached, because in virtual time all receivers
    of a broadcast are in this process and get the same bytes. Raises Malformed.
    """
    message = wire.decode(data)
    return message, wire.kind_of(message), _named(message)


def _named(message: Message) -> tuple[int, ...]:
    """Returns the addresses that a message could make routes to. An error can only remove existing routes."""
    match message:
        case Request() | Reply():
            return message.originator, message.destination
        case _:
            return ()


def _ns(seconds: float) -> int:
    return round(seconds * 1_000_000_000)


def _ms_left(route: Route, now_ns: int) -> int:
    return max(1, (route.expires_ns - now_ns) // 1_000_000)
