"""Contention for the medium: which nodes wait, since when, and which is next; DIFS, EIFS, frozen backoff.

Backoff is arithmetic, nothing happens per slot: a node that counts from ``ready`` on transmits at
``ready + backoff · slot``, unless the medium turns busy before; then what is left of the backoff waits with
it. Sets of nodes are bit sets (see ``channel``).
"""

import random

from orchestrator.radio.air import Air, members
from orchestrator.radio.channel import Channel
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import Station

NEVER = 1 << 62


class Contention(Air):
    """A node is counting, or frozen, or idle, or in an exchange of its own. Those that count have a time in
    ``_access_at``; the earliest of these is kept in ``_next_access``."""

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
            # Whoever's countdown ends at this very moment cannot know better: that is a collision. But one
            # that answers at this moment does: its own frame waits.
            if access_at[node] != now or self.on_air & bit:
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
