"""Tracks who is sending, which frame each receiver follows, and whether it decodes that frame.

A receiver locks on to one frame at a time: the strongest of those that start together. It leaves it for a
later frame only by capture. Every other transmission is interference. Propagation takes no time.
"""

import math
import random

from orchestrator.radio.airtime import Airtime
from orchestrator.radio.channel import NEGLIGIBLE, Channel
from orchestrator.radio.interference import ln_success
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import Station
from orchestrator.radio.units_db import dbm_to_mw

UNICAST, BROADCAST, ACK, RTS, CTS = range(5)
"""What can be on the air."""

_PREAMBLE_DETECTION_NS = 4_000


class Air:
    """The transmissions that are on the air. ``on_air`` and ``locked`` are sets of nodes; each station keeps
    its own last transmission.
    """

    __slots__ = (
        "_by_kind",
        "_capture_ratio",
        "_least_mw",
        "_overhead",
        "_preamble_ratio",
        "_random",
        "air",
        "channel",
        "locked",
        "mac",
        "on_air",
        "stations",
    )

    def __init__(self, channel: Channel, mac: Mac, rng: random.Random) -> None:
        self.mac = mac
        self.air = Airtime(mac)
        self.on_air = 0
        self.locked = 0
        self.stations = [
            Station(index, channel.node_count, mac.cw_min) for index in range(channel.node_count)
        ]
        self._random = rng.random
        self.place(channel)

    def place(self, channel: Channel) -> None:
        """Uses another channel from now on. Frames on the air keep their receivers; the new channel decides
        about success.
        """
        self.channel = channel
        for station in self.stations:
            station.place(channel)
        self._least_mw = channel.noise_mw * NEGLIGIBLE
        radio, mac, air = channel.radio, self.mac, self.air
        curves = radio.reception.curves
        self._overhead = radio.reception.counted_overhead
        self._preamble_ratio = dbm_to_mw(radio.preamble_sinr_db)
        self._capture_ratio = math.inf if radio.capture_db is None else dbm_to_mw(radio.capture_db)
        # By kind: success without interference, curve, and the part of the airtime that carries no data.
        control = (channel.ln_control, curves[mac.control_rate], air.control_preamble)
        self._by_kind = (
            (channel.ln_unicast, curves[mac.unicast_rate], air.unicast_preamble),
            (channel.ln_broadcast, curves[mac.broadcast_rate], air.broadcast_preamble),
            control,
            control,
            control,
        )

    def decodes(self, sender: Station, receiver: int) -> bool:
        """Decides whether ``receiver``, which locked on to ``sender``'s last frame, decodes all of it."""
        clean, curve, preamble = self._by_kind[sender.kind]
        if sender.overlaps is not None:
            power, least = self.channel.power_mw, self._least_mw
            disturbances = []
            for other, start, end in sender.overlaps:
                if (disturbing := power[other][receiver]) > least:
                    disturbances.append((start, end, disturbing))
            if disturbances:
                interval = (sender.start + preamble, sender.end)
                signal, noise = sender.power[receiver], self.channel.noise_mw
                ln = ln_success(curve, sender.length, interval, signal, noise, disturbances)
                return self._random() < math.exp(ln)
        per_byte = clean[sender.index][receiver]
        return per_byte == 0.0 or self._random() < math.exp(per_byte * sender.length)

    def decoding(self, sender: Station, receivers: int) -> list[int]:
        """Decides which of these nodes, which locked on to ``sender``'s last frame, decode all of it."""
        if sender.overlaps is not None:
            return [receiver for receiver in members(receivers) if self.decodes(sender, receiver)]
        clean, length, draw = self._by_kind[sender.kind][0][sender.index], sender.length, self._random
        return [
            receiver
            for receiver in members(receivers)
            if (per_byte := clean[receiver]) == 0.0 or draw() < math.exp(per_byte * length)
        ]

    def stop_receiving(self, station: Station) -> None:
        """Ends reception at a node that starts to send: it cannot do both."""
        self.locked &= ~station.bit
        for other in members(self.on_air):
            self.stations[other].locks &= ~station.bit

    def collide(self, now: int, sender: Station, end: int, contending: int) -> int:
        """Handles the start of a transmission while rivals are on the air: records who disturbs whom, and
        returns who locks on to it.

        It is exact for the receivers that matter: the destinations of a frame, and nodes that contend.
        """
        stations = self.stations
        others = [stations[other] for other in members(self.on_air & sender.rivals)]
        overlaps = []
        disturbed, concerned = 0, contending
        for other in others:
            mine = (sender.index, now, end)
            if other.overlaps is None:
                other.overlaps = [mine]
            else:
                other.overlaps.append(mine)
            overlaps.append((other.index, other.start, other.end))
            disturbed |= other.hearers
            concerned |= 1 << other.peer if other.peer >= 0 else other.decoders
        sender.overlaps = overlaps
        concerned |= 1 << sender.peer if sender.peer >= 0 else sender.decoders
        locks = sender.decoders & ~self.on_air
        for receiver in members(locks & disturbed & concerned):
            if not self._locks_on(now, sender, receiver, others):
                locks &= ~(1 << receiver)
        return locks & ~(self.locked & ~concerned)

    def _locks_on(self, now: int, sender: Station, receiver: int, others: list[Station]) -> bool:
        signal, noise = sender.power[receiver], self.channel.noise_mw
        disturbing = 0.0
        for other in others:  # mostly one: a list and its sum would cost more
            disturbing += other.power[receiver]
        received = noise + disturbing
        bit = 1 << receiver
        if self.locked & bit:
            for holder in others:
                if holder.locks & bit:
                    break
            else:  # the sender has moved out of reach since
                return False
            held = holder.power[receiver]
            if now - holder.start >= _PREAMBLE_DETECTION_NS:
                if signal < self._capture_ratio * held:
                    return False
            elif signal <= held:
                if held < self._preamble_ratio * (received - held + signal):
                    holder.locks ^= bit
                    self.locked ^= bit
                return False
            holder.locks ^= bit
            self.locked ^= bit
        return signal >= self._preamble_ratio * received


def members(nodes: int) -> list[int]:
    found = []
    while nodes:
        bit = nodes & -nodes
        nodes ^= bit
        found.append(bit.bit_length() - 1)
    return found
