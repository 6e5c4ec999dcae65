"""Simulates what follows when a node gets the medium: data and ACK, broadcast, RTS and CTS, or no answer.

Events are ends of transmissions, answers that are due, and timeouts. ``dcf`` has the clock.
"""

import random
from collections.abc import Callable
from heapq import heappush

from orchestrator.radio.air import ACK, BROADCAST, CTS, RTS, UNICAST, members
from orchestrator.radio.airtime import ACK_BYTES, CTS_BYTES, RTS_BYTES
from orchestrator.radio.channel import Channel
from orchestrator.radio.contention import NEVER, Contention
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import EVERYONE, Outgoing, Station

Pull = Callable[[int], Outgoing | None]
Deliver = Callable[[int, int, Outgoing], None]
GiveUp = Callable[[int, Outgoing], None]

# Kinds of events, in the order in which they happen at one instant; accesses to the medium come last.
END, RESPOND, TIMEOUT = range(3)


class Exchanges(Contention):
    """``_events`` is a heap of (time, kind, node)."""

    __slots__ = (
        "_ack_ns",
        "_answer_ns",
        "_cw_min",
        "_deliver",
        "_events",
        "_give_up",
        "_pull",
        "_rts_from",
        "_sifs",
        "_unicast_ns",
    )

    def __init__(
        self, channel: Channel, mac: Mac, rng: random.Random, pull: Pull, deliver: Deliver, give_up: GiveUp
    ) -> None:
        super().__init__(channel, mac, rng)
        air = self.air
        self._pull, self._deliver, self._give_up = pull, deliver, give_up
        self._sifs, self._unicast_ns, self._ack_ns = air.sifs, air.unicast, air.ack
        self._answer_ns = air.sifs + air.ack
        self._cw_min = mac.cw_min
        self._rts_from = NEVER if mac.rts_from_bytes is None else mac.rts_from_bytes
        self._events: list[tuple[int, int, int]] = []

    def _on_access(self, now: int, station: Station) -> bool:
        """Handles the end of ``station``'s countdown: decides whether it transmits."""
        self._access_at[station.index] = NEVER
        self._counting ^= station.bit
        head = station.head
        if head is None:
            self._next_access = min(self._access_at)
            return False
        destination, size = head.destination, head.size
        if destination < 0:
            station.broadcasts += 1
            self._transmit(now, station, BROADCAST, EVERYONE, self.air.broadcast[size], size + self._overhead)
        elif size < self._rts_from:
            self._transmit(now, station, UNICAST, destination, self._unicast_ns[size], size + self._overhead)
        else:
            self._transmit(now, station, RTS, destination, self.air.rts, RTS_BYTES)
        return True

    def _transmit(self, now: int, station: Station, kind: int, peer: int, duration: int, length: int) -> None:
        station.kind = kind
        station.peer = peer
        station.start = now
        station.end = end = now + duration
        station.air_ns += duration
        station.length = length
        station.overlaps = None
        bit, on_air = station.bit, self.on_air
        if not on_air:
            station.locks = self.locked = station.decoders
            self.on_air = bit
        else:
            if self.locked & bit:
                self.stop_receiving(station)
            if on_air & station.rivals:
                station.locks = self.collide(now, station, end, self._counting | self._frozen)
            else:
                station.locks = station.decoders
            self.locked |= station.locks
            self.on_air = on_air | bit
        if touched := self._counting & station.hearers:
            self._freeze(now, touched)
        self._next_access = min(self._access_at) if self._counting else NEVER

    def _on_end(self, now: int, station: Station) -> None:
        """Handles the end of ``station``'s frame.
        The usual case, data for one receiver, is written out here.
        """
        self.on_air = on_air = self.on_air ^ station.bit
        self.locked = self.locked & ~station.locks if on_air else 0
        station.matters_until = until = now + self._eifs
        if until > self._matters_until:
            self._matters_until = until
        if station.kind != UNICAST:
            self._end_other(now, station)
            return
        peer = station.peer
        receiver = self.stations[peer]
        station.link_attempts[peer] += 1
        station.reserved = now + self._answer_ns
        if not station.locks & receiver.bit or not (
            (station.overlaps is None and station.ln_unicast[peer] == 0.0) or self.decodes(station, peer)
        ):
            heappush(self._events, (now + self.air.response_timeout, TIMEOUT, station.index))
            waiting = self._frozen & station.hearers
            if waiting:
                self._resume(station, waiting)
            return
        station.link_received[peer] += 1
        if not station.handed_over:
            station.handed_over = True
            # The ACK is not on the air yet, so a frame that this node forwards finds the medium idle.
            deliver = self._deliver
            deliver(peer, station.index, station.head)  # type: ignore[arg-type]
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
        """Handles the whole ACK at once, ahead of its time: no node can start to send before it ends.

        Nodes that hear the data or the ACK wait. A node that gets a frame later learns from the
        transmission's ``end`` that the medium is busy.
        """
        receiver.kind = ACK
        receiver.peer = sender.index
        receiver.start = now + self._sifs
        receiver.end = end = now + self._answer_ns
        receiver.air_ns += self._ack_ns
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
        index = sender.index
        if locks & sender.bit and (receiver.ln_control[index] == 0.0 or self.decodes(receiver, index)):
            sender.acknowledged += 1
            sender.link_acknowledged[receiver.index] += 1
            sender.window = self._cw_min
            self._next(end, sender)
        else:
            timeout = max(end, now + self.air.response_timeout)
            heappush(self._events, (timeout, TIMEOUT, sender.index))
        frozen = self._frozen
        if frozen and (waiting := frozen & receiver.hearers & ~sender.bit):
            self._resume(receiver, waiting)

    def _end_other(self, now: int, station: Station) -> None:
        kind = station.kind
        if kind == ACK:
            self._end_ack(now, station)
        elif kind == BROADCAST:
            self._end_broadcast(now, station)
        elif kind == RTS:
            self._end_rts(now, station)
        else:
            self._end_cts(now, station)

    def _end_ack(self, now: int, station: Station) -> None:
        station.reserved = 0
        sender = self.stations[station.peer]
        if station.locks & sender.bit and self.decodes(station, sender.index):
            sender.acknowledged += 1
            sender.link_acknowledged[station.index] += 1
            sender.window = self._cw_min
            self._next(now, sender)
        else:
            timeout = max(now, sender.end + self.air.response_timeout)
            heappush(self._events, (timeout, TIMEOUT, sender.index))
        self._resume(station, self._frozen & station.hearers & ~sender.bit)

    def _end_broadcast(self, now: int, station: Station) -> None:
        station.reserved = 0
        frame = station.head
        for receiver in members(station.decoders):
            station.link_attempts[receiver] += 1
        got = self.decoding(station, station.locks & station.decoders)
        for receiver in got:
            station.link_received[receiver] += 1
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
            # Nodes that heard the RTS but no data after it drop the reservation.
            self._reserve(station, now + 2 * self._sifs + air.cts + 2 * self._slot)
            heappush(self._events, (now + air.response_timeout, TIMEOUT, station.index))
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
            heappush(self._events, (timeout, TIMEOUT, sender.index))
        self._resume(station, waiting)

    def _reserve(self, station: Station, until: int) -> None:
        station.reserved = until
        station.matters_until = max(station.matters_until, until + self._difs)
        self._matters_until = max(self._matters_until, station.matters_until)

    def _is_reserved(self, station: Station, now: int) -> bool:
        """Says whether this node knows of an exchange between others that still goes on."""
        for node in station.heard_nodes:
            other = self.stations[node]
            over = not self.on_air & other.bit
            if over and other.reserved > now and other.peer != station.index and other.locks & station.bit:
                return True
        return False

    def _respond(self, now: int, station: Station, kind: int, peer: int) -> None:
        station.response = (kind, peer)
        heappush(self._events, (now + self._sifs, RESPOND, station.index))

    def _on_respond(self, now: int, station: Station) -> None:
        kind, peer = station.response
        if self.on_air & station.bit:  # it moved out of this exchange, and is in another one already
            heappush(self._events, (now + self._slot, TIMEOUT, peer))
            return
        if kind == ACK:
            self._transmit(now, station, ACK, peer, self._ack_ns, ACK_BYTES)
        elif kind == CTS:
            self._transmit(now, station, CTS, peer, self.air.cts, CTS_BYTES)
        else:
            size = station.head.size  # type: ignore[union-attr]
            self._transmit(now, station, UNICAST, peer, self._unicast_ns[size], size + self._overhead)
        heappush(self._events, (station.end, END, station.index))

    def _on_timeout(self, now: int, station: Station) -> None:
        station.timeouts += 1
        station.tries += 1
        frame, mac = station.head, self.mac
        station.link_timeouts[frame.destination] += 1  # type: ignore[union-attr]
        if station.tries < mac.attempts:
            station.window = min(2 * station.window + 1, mac.cw_max)
            station.ready = max(now + self._difs, self._history(station, now)[1])
            station.backoff = int(self._random() * (station.window + 1))
            self._contend(station)
            return
        station.given_up += 1
        station.link_given_up[frame.destination] += 1  # type: ignore[union-attr]
        station.window = mac.cw_min
        self._next(now, station)
        self._give_up(station.index, frame)  # type: ignore[arg-type]

    def _next(self, now: int, station: Station) -> None:
        """Ends the work on a frame and takes the next. A backoff follows even if there is no next frame."""
        pull, random_share = self._pull, self._random  # locals, because looking up attributes is slower
        station.head = pull(station.index)
        station.tries = 0
        station.handed_over = False
        station.ready = ready = now + self._difs
        station.backoff = backoff = int(random_share() * (station.window + 1))
        # The same as _contend, inlined for speed: this happens after every frame.
        if self.on_air & station.heard:
            self._frozen |= station.bit
            return
        self._counting |= station.bit
        self._access_at[station.index] = at = ready + backoff * self._slot
        if at < self._next_access:
            self._next_access = at
