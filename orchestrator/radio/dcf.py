"""The 802.11b distributed coordination function over a shared channel, in model time.

Events are starts, ends and timeouts of transmissions; nothing happens per slot. Backoff is arithmetic: a
node that counts from ``ready`` on transmits at ``ready + backoff · slot``, unless the medium turns busy
before; then what is left of the backoff waits with it. Sets of nodes are bit sets (see ``channel``), so an
undisturbed exchange costs the same among two nodes and among fifty.

Frames are pulled: the medium holds at most the head frame of each node and asks for the next when it is done
with one, so that the queue may be a ``deque`` as well as the ring of a TAP device.
"""

import random
from collections.abc import Callable
from heapq import heappop, heappush

from orchestrator.radio.air import ACK, BROADCAST, CTS, RTS, UNICAST, Air, members
from orchestrator.radio.airtime import ACK_BYTES, CTS_BYTES, RTS_BYTES
from orchestrator.radio.channel import Channel
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import EVERYONE, Outgoing, Station

NEVER = 1 << 62

Pull = Callable[[int], Outgoing | None]
Deliver = Callable[[int, int, Outgoing], None]
GiveUp = Callable[[int, Outgoing], None]

# Kinds of events, in the order in which they happen at one instant; accesses to the medium come last.
_END, _RESPOND, _TIMEOUT = range(3)


class Dcf(Air):
    """``pull(node)`` hands over a node's next frame; ``deliver(receiver, sender, frame)`` and
    ``give_up(sender, frame)`` report. They run at ``now_ns`` and may call ``offer`` at once.
    """

    __slots__ = (
        "_access_at",
        "_ack_ns",
        "_counting",
        "_cw_min",
        "_deliver",
        "_difs",
        "_eifs",
        "_events",
        "_frozen",
        "_give_up",
        "_matters_until",
        "_next_access",
        "_pull",
        "_rts_from",
        "_sifs",
        "_slot",
        "_unicast_ns",
        "now_ns",
    )

    def __init__(
        self, channel: Channel, mac: Mac, rng: random.Random, pull: Pull, deliver: Deliver, give_up: GiveUp
    ) -> None:
        super().__init__(channel, mac, rng)
        air = self.air
        self.now_ns = 0
        self._pull, self._deliver, self._give_up = pull, deliver, give_up
        self._slot, self._sifs, self._difs, self._eifs = air.slot, air.sifs, air.difs, air.eifs
        self._unicast_ns, self._ack_ns = air.unicast, air.ack
        self._cw_min = mac.cw_min
        self._rts_from = NEVER if mac.rts_from_bytes is None else mac.rts_from_bytes
        self._events: list[tuple[int, int, int]] = []
        # A node is counting, or frozen, or idle, or in an exchange of its own. Those that count have a time
        # in _access_at; the earliest of these is cached.
        self._counting = 0
        self._frozen = 0
        self._access_at = [NEVER] * channel.node_count
        self._next_access = NEVER
        self._matters_until = 0

    def offer(self, node: int, now_ns: int) -> None:
        """``node`` has something to send: it is pulled at once unless the node has a frame in hand."""
        station = self.stations[node]
        if station.head is not None:
            return
        self.now_ns = now_ns
        station.head = self._pull(node)
        if station.head is None or (self._counting | self._frozen) & station.bit:
            return
        busy, ready = self._history(station, now_ns)
        station.ready = ready if ready > now_ns else now_ns
        station.backoff = int(self._random() * (station.window + 1)) if busy else 0
        self._contend(station)

    def run_until(self, until_ns: int) -> None:
        """Let everything up to and including ``until_ns`` happen."""
        events, stations, access_at = self._events, self.stations, self._access_at
        while True:
            access = self._next_access
            now = events[0][0] if events else NEVER
            if access < now:
                if access > until_ns:
                    break
                self.now_ns = access
                self._on_access(access, stations[access_at.index(access)])
            elif now > until_ns:
                break
            else:
                self.now_ns = now
                _, kind, node = heappop(events)
                if kind == _END:
                    self._on_end(now, stations[node])
                elif kind == _RESPOND:
                    self._on_respond(now, stations[node])
                else:
                    self._on_timeout(now, stations[node])
        self.now_ns = until_ns

    def next_event_ns(self) -> int:
        """When something happens next if nothing is offered before: NEVER if nothing does."""
        events = self._events
        return min(events[0][0], self._next_access) if events else self._next_access

    def next_delivery_ns(self) -> int:
        """Before this moment nothing is delivered if nothing is offered before: NEVER if nothing waits.

        For a driver to whom waking up is dear: transmissions need not be seen to start, only to end.
        """
        earliest = self._events[0][0] if self._events else NEVER
        access_at, stations, air = self._access_at, self.stations, self.air
        nodes = self._counting
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            head = stations[node].head
            if head is not None:
                destination, size, _ = head
                if destination < 0:
                    end = access_at[node] + air.broadcast[size]
                elif size < self._rts_from:
                    end = access_at[node] + self._unicast_ns[size]
                else:
                    end = access_at[node] + air.rts
                if end < earliest:
                    earliest = end
        return earliest

    def move(self, channel: Channel, now_ns: int) -> None:
        """Nodes have moved: go on over another channel."""
        self.place(channel)
        for node in members(self._counting):
            if self.on_air & self.stations[node].heard:
                self._freeze(now_ns, 1 << node)
        self._next_access = min(self._access_at)
        for node in members(self._frozen):
            station = self.stations[node]
            if not self.on_air & station.heard:
                self._frozen ^= station.bit
                station.ready = max(station.ready, now_ns + self._difs)
                self._contend(station)

    # Contention

    def _contend(self, station: Station) -> None:
        """Start counting down if the medium is idle here, else wait until it is."""
        if self.on_air & station.heard:
            self._frozen |= station.bit
        else:
            self._counting |= station.bit
            at = station.ready + station.backoff * self._slot
            self._access_at[station.index] = at
            if at < self._next_access:
                self._next_access = at

    def _freeze(self, now: int, nodes: int) -> None:
        access_at, stations, slot = self._access_at, self.stations, self._slot
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            # Whoever's countdown ends at this very moment cannot know better: that is a collision.
            if access_at[node] != now:
                access_at[node] = NEVER
                station = stations[node]
                counted = now - station.ready
                if counted > 0:
                    station.backoff -= counted // slot
                self._counting ^= bit
                self._frozen ^= bit

    def _resume(self, sender: Station, nodes: int) -> None:
        """``sender``'s last frame is over: let those of ``nodes`` count on that hear nobody else."""
        stations, access_at, on_air, slot = self.stations, self._access_at, self.on_air, self._slot
        undisturbed = sender.overlaps is None
        clean = self._by_kind[sender.kind][0][sender.index]
        locks, after = sender.locks, sender.end + self._difs
        after_decoding = max(after, sender.reserved + self._difs)
        next_access = self._next_access
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            station = stations[node]
            if not locks & bit:
                earliest = after
            elif undisturbed and clean[node] == 0.0 and node != sender.peer:
                earliest = after_decoding
            else:
                earliest = self._earliest(station, sender)[1]
            if earliest > station.ready:
                station.ready = earliest
            if not on_air & station.heard:
                self._frozen ^= bit
                self._counting |= bit
                access_at[node] = at = station.ready + station.backoff * slot
                if at < next_access:
                    next_access = at
        self._next_access = next_access

    def _earliest(self, station: Station, sender: Station) -> tuple[bool, int]:
        """Is the medium reserved here by ``sender``'s last frame, and when may counting start after it?"""
        ended = sender.end
        if sender.locks & station.bit:
            if not self.decodes(sender, station.index):
                return False, ended + self._eifs
            if sender.reserved > ended and sender.peer != station.index:
                return True, sender.reserved + self._difs
        return False, ended + self._difs

    def _history(self, station: Station, now: int) -> tuple[bool, int]:
        """For a node that has not followed the medium: is it busy, and when may counting start?"""
        busy = bool(self.on_air & station.heard)
        ready = 0
        if self._matters_until > now:
            for node in station.heard_nodes:
                sender = self.stations[node]
                if sender.matters_until > now and not self.on_air & sender.bit:
                    reserved, earliest = self._earliest(station, sender)
                    busy = busy or sender.end > now or (reserved and sender.reserved > now)
                    ready = max(ready, earliest)
        return busy, ready

    # Exchanges

    def _on_access(self, now: int, station: Station) -> None:
        self._access_at[station.index] = NEVER
        self._counting ^= station.bit
        station.backoff = 0
        head = station.head
        if head is None:
            self._next_access = min(self._access_at)
            return
        destination, size, _ = head
        if destination < 0:
            station.broadcasts += 1
            self._transmit(now, station, BROADCAST, EVERYONE, self.air.broadcast[size], size + self._overhead)
        elif size < self._rts_from:
            self._transmit(now, station, UNICAST, destination, self._unicast_ns[size], size + self._overhead)
        else:
            self._transmit(now, station, RTS, destination, self.air.rts, RTS_BYTES)

    def _transmit(self, now: int, station: Station, kind: int, peer: int, duration: int, length: int) -> None:
        station.kind = kind
        station.peer = peer
        station.start = now
        station.end = end = now + duration
        station.length = length
        station.overlaps = None
        bit = station.bit
        if self.locked & bit:
            self.stop_receiving(station)
        if self.on_air & station.rivals:
            station.locks = locks = self.collide(now, station, end, self._counting | self._frozen)
        else:
            station.locks = locks = station.decoders
        self.locked |= locks
        self.on_air |= bit
        counting = self._counting
        if counting:
            if touched := counting & station.hearers:
                self._freeze(now, touched)
            self._next_access = min(self._access_at)
        else:
            self._next_access = NEVER
        heappush(self._events, (end, _END, station.index))

    def _on_end(self, now: int, station: Station) -> None:
        self.on_air ^= station.bit
        self.locked &= ~station.locks
        station.matters_until = until = now + self._eifs
        if until > self._matters_until:
            self._matters_until = until
        kind = station.kind
        if kind == UNICAST:
            self._end_unicast(now, station)
        elif kind == ACK:
            self._end_ack(now, station)
        elif kind == BROADCAST:
            self._end_broadcast(now, station)
        elif kind == RTS:
            self._end_rts(now, station)
        else:
            self._end_cts(now, station)

    def _end_unicast(self, now: int, station: Station) -> None:
        peer = station.peer
        receiver = self.stations[peer]
        station.link_attempts[peer] += 1
        station.reserved = now + self._sifs + self._ack_ns
        if not (station.locks & receiver.bit and self.decodes(station, peer)):
            heappush(self._events, (now + self.air.response_timeout, _TIMEOUT, station.index))
            waiting = self._frozen & station.hearers
            if waiting:
                self._resume(station, waiting)
            return
        station.link_received[peer] += 1
        if not station.handed_over:
            station.handed_over = True
            # The ACK is not on the air yet: a frame sent on from here finds the medium idle.
            self._deliver(peer, station.index, station.head)  # type: ignore[arg-type]
        frozen = self._frozen
        if frozen and (waiting := frozen & station.hearers & ~receiver.hearers):
            self._resume(station, waiting)
        rivals = receiver.rivals
        counting = self._counting & rivals
        if self.on_air & rivals or (counting and counting & ~(receiver.bit | station.bit)):
            self._respond(now, receiver, ACK, station.index)
        else:
            self._acknowledge(now, receiver, station)

    def _acknowledge(self, now: int, receiver: Station, sender: Station) -> None:
        """The whole ACK at once, ahead of its time: nobody is left who could start before it ends.

        Those who hear the data or the ACK wait, and nodes with a frame that is still to come are told by
        the transmission's ``end`` that the medium is busy.
        """
        receiver.kind = ACK
        receiver.peer = sender.index
        receiver.start = start = now + self._sifs
        receiver.end = end = start + self._ack_ns
        receiver.length = ACK_BYTES
        receiver.locks = locks = receiver.decoders
        receiver.overlaps = None
        receiver.reserved = 0
        receiver.matters_until = until = end + self._eifs
        if until > self._matters_until:
            self._matters_until = until
        if self._counting & receiver.bit:
            self._freeze(now, receiver.bit)
            self._next_access = min(self._access_at)
        if locks & sender.bit and self.decodes(receiver, sender.index):
            sender.acknowledged += 1
            sender.window = self._cw_min
            self._next(end, sender)
        else:
            timeout = max(end, now + self.air.response_timeout)
            heappush(self._events, (timeout, _TIMEOUT, sender.index))
        frozen = self._frozen
        if frozen and (waiting := frozen & receiver.hearers & ~sender.bit):
            self._resume(receiver, waiting)

    def _end_ack(self, now: int, station: Station) -> None:
        station.reserved = 0
        sender = self.stations[station.peer]
        if station.locks & sender.bit and self.decodes(station, sender.index):
            sender.acknowledged += 1
            sender.window = self._cw_min
            self._next(now, sender)
        else:
            timeout = max(now, sender.end + self.air.response_timeout)
            heappush(self._events, (timeout, _TIMEOUT, sender.index))
        self._resume(station, self._frozen & station.hearers & ~sender.bit)

    def _end_broadcast(self, now: int, station: Station) -> None:
        station.reserved = 0
        frame = station.head
        got = []
        for receiver in members(station.decoders):
            station.link_attempts[receiver] += 1
            if station.locks >> receiver & 1 and self.decodes(station, receiver):
                station.link_received[receiver] += 1
                got.append(receiver)
        self._next(now, station)
        self._resume(station, self._frozen & station.hearers & ~station.bit)
        for receiver in got:
            self._deliver(receiver, station.index, frame)  # type: ignore[arg-type]

    def _end_rts(self, now: int, station: Station) -> None:
        receiver, air = self.stations[station.peer], self.air
        waiting = self._frozen & station.hearers
        if (
            station.locks & receiver.bit
            and not self._is_reserved(receiver, now)
            and self.decodes(station, receiver.index)
        ):
            data = self._unicast_ns[station.head.size]  # type: ignore[union-attr]
            self._reserve(station, now + 3 * self._sifs + air.cts + data + air.ack)
            self._respond(now, receiver, CTS, station.index)
            waiting &= ~receiver.hearers
        else:
            # Whoever heard the RTS, but no data after it, forgets the reservation.
            self._reserve(station, now + 2 * self._sifs + air.cts + 2 * self._slot)
            heappush(self._events, (now + air.response_timeout, _TIMEOUT, station.index))
        self._resume(station, waiting)

    def _end_cts(self, now: int, station: Station) -> None:
        sender, air = self.stations[station.peer], self.air
        waiting = self._frozen & station.hearers
        data = self._unicast_ns[sender.head.size]  # type: ignore[union-attr]
        self._reserve(station, now + 2 * self._sifs + data + air.ack)
        if station.locks & sender.bit and self.decodes(station, sender.index):
            self._respond(now, sender, UNICAST, station.index)
            waiting &= ~sender.hearers
        else:
            timeout = max(now, sender.end + air.response_timeout)
            heappush(self._events, (timeout, _TIMEOUT, sender.index))
        self._resume(station, waiting)

    def _reserve(self, station: Station, until: int) -> None:
        station.reserved = until
        station.matters_until = max(station.matters_until, until + self._difs)
        self._matters_until = max(self._matters_until, station.matters_until)

    def _is_reserved(self, station: Station, now: int) -> bool:
        """Does this node know of an exchange of others that still goes on?"""
        for node in station.heard_nodes:
            other = self.stations[node]
            over = not self.on_air & other.bit
            if over and other.reserved > now and other.peer != station.index and other.locks & station.bit:
                return True
        return False

    def _respond(self, now: int, station: Station, kind: int, peer: int) -> None:
        station.response = (kind, peer)
        heappush(self._events, (now + self._sifs, _RESPOND, station.index))

    def _on_respond(self, now: int, station: Station) -> None:
        kind, peer = station.response
        if self.on_air & station.bit:  # moved out of the exchange, and in another one already
            heappush(self._events, (now + self._slot, _TIMEOUT, peer))
        elif kind == ACK:
            self._transmit(now, station, ACK, peer, self._ack_ns, ACK_BYTES)
        elif kind == CTS:
            self._transmit(now, station, CTS, peer, self.air.cts, CTS_BYTES)
        else:
            size = station.head.size  # type: ignore[union-attr]
            self._transmit(now, station, UNICAST, peer, self._unicast_ns[size], size + self._overhead)

    def _on_timeout(self, now: int, station: Station) -> None:
        station.timeouts += 1
        station.tries += 1
        mac = self.mac
        if station.tries < mac.attempts:
            station.window = min(2 * station.window + 1, mac.cw_max)
            self._back_off(max(now + self._difs, self._history(station, now)[1]), station)
            return
        station.given_up += 1
        station.window = mac.cw_min
        frame = station.head
        self._next(now, station)
        self._give_up(station.index, frame)  # type: ignore[arg-type]

    def _next(self, now: int, station: Station) -> None:
        """Done with a frame. The backoff that follows is due whether or not there is another one."""
        station.head = self._pull(station.index)
        station.tries = 0
        station.handed_over = False
        self._back_off(now + self._difs, station)

    def _back_off(self, ready: int, station: Station) -> None:
        """Count a new backoff from ``ready`` on, or once the medium is idle."""
        station.ready = ready
        station.backoff = backoff = int(self._random() * (station.window + 1))
        # The same as _contend, written out: this happens after every single frame.
        if self.on_air & station.heard:
            self._frozen |= station.bit
            return
        self._counting |= station.bit
        self._access_at[station.index] = at = ready + backoff * self._slot
        if at < self._next_access:
            self._next_access = at
