"""Decides which node gets the medium next, with DIFS, EIFS and backoff that freezes while the medium is busy.

Backoff is computed, not counted slot by slot: a node that counts from ``ready`` on transmits at ``ready +
backoff · slot``. If the medium becomes busy before that, the node keeps the rest of its backoff. Sets of
nodes are bit sets (see ``channel``).
"""

import random
from math import exp

from orchestrator.radio.air import Air, members
from orchestrator.radio.channel import Channel
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import Station

NEVER = 1 << 62


class Contention(Air):
    """A node is counting, frozen, idle, or in an exchange of its own. ``_access_at`` holds the time of each
    counting node, ``_next_access`` the earliest of these.
    """

    __slots__ = (
        "_access_at",
        "_counting",
        "_difs",
        "_eifs",
        "_frozen",
        "_matters_until",
        "_next_access",
        "_slot",
    )

    def __init__(self, channel: Channel, mac: Mac, rng: random.Random) -> None:
        super().__init__(channel, mac, rng)
        self._slot, self._difs, self._eifs = self.air.slot, self.air.difs, self.air.eifs
        self._counting = 0
        self._frozen = 0
        self._access_at = [NEVER] * channel.node_count
        self._next_access = NEVER
        self._matters_until = 0

    def move(self, channel: Channel, now_ns: int) -> None:
        """Continues with another channel after nodes have moved."""
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

    def _contend(self, station: Station) -> None:
        """Starts counting down if the medium is idle here; otherwise waits until it is."""
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
            # A node whose countdown ends at this very moment does not sense the frame: they collide.
            # A node that sends an answer at this moment does: its own frame waits.
            if access_at[node] != now or self.on_air & bit:
                access_at[node] = NEVER
                station = stations[node]
                counted = now - station.ready
                if counted > 0:
                    station.backoff -= counted // slot
                self._counting ^= bit
                self._frozen ^= bit

    def _resume(self, sender: Station, nodes: int) -> None:
        """Ends ``sender``'s last frame: those of ``nodes`` that hear nobody else count on."""
        if not nodes:
            return
        stations, access_at, on_air, slot = self.stations, self._access_at, self.on_air, self._slot
        undisturbed, length = sender.overlaps is None, sender.length
        clean = self._by_kind[sender.kind][0][sender.index]
        locks, after, after_failing = sender.locks, sender.end + self._difs, sender.end + self._eifs
        after_decoding = max(after, sender.reserved + self._difs)
        next_access, resumed = self._next_access, 0
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            station = stations[node]
            # The same as _earliest, written out for speed.
            if not locks & bit:
                earliest = after
            elif (
                ((per_byte := clean[node]) == 0.0 or self._random() < exp(per_byte * length))
                if undisturbed
                else self.decodes(sender, node)
            ):
                earliest = after_decoding if node != sender.peer else after
            else:
                earliest = after_failing
            if earliest > station.ready:
                station.ready = earliest
            if not on_air & station.heard:
                resumed |= bit
                access_at[node] = at = station.ready + station.backoff * slot
                if at < next_access:
                    next_access = at
        self._frozen ^= resumed
        self._counting |= resumed
        self._next_access = next_access

    def _earliest(self, station: Station, sender: Station) -> tuple[bool, int]:
        """Returns whether ``sender``'s last frame reserves the medium here, and when counting may start after
        it.
        """
        ended = sender.end
        if sender.locks & station.bit:
            if not self.decodes(sender, station.index):
                return False, ended + self._eifs
            if sender.reserved > ended and sender.peer != station.index:
                return True, sender.reserved + self._difs
        return False, ended + self._difs

    def _history(self, station: Station, now: int) -> tuple[bool, int]:
        """Returns, for a node that did not follow the medium, whether it is busy and when counting
        may start.
        """
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
