"""Delivers results to the consumer: in order, and only those that the epoch asks for (thesis, section
2.2.2)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from node_agent.apps.mcep.channel import Broken, ChannelId, Inlet, Marker, Message
from node_agent.apps.mcep.gate import Gate
from node_agent.apps.mcep.model import Event, Policy


class Delivered(NamedTuple):
    epoch: int
    event: Event
    historical: bool
    """Whether it is from before the epoch's start (definitions 1 and 2)."""


class Delivery:
    """``history``: δ. ``early``: results from before the history that was asked for; they are not
    delivered."""

    def __init__(self, inlets: Mapping[ChannelId, Inlet], history: float, policy: Policy) -> None:
        self.gate = Gate(inlets, strict=policy.is_strict)
        self.marker: Marker | None = None
        self.early = 0
        self._history, self._in_order = history, policy.order == "spatiotemporal"

    def receive(self, channel: ChannelId, message: Message) -> list[Delivered]:
        self.gate.receive(channel, message)
        return self._go_on()

    def look(self, patience: int) -> list[Delivered]:
        """Best effort goes on without channels that bring nothing, see ``Gate.look``."""
        return self._go_on() if self.gate.look(patience) else []

    def _go_on(self) -> list[Delivered]:
        found: list[Delivered] = []
        while True:
            while (taken := self.gate.take() if self._in_order else self.gate.take_any()) is not None:
                self._deliver(taken[1], found)
            marker = self.gate.ended()
            if marker is None:
                return found
            self.gate.begin(marker)
            self.marker = marker

    @property
    def ended(self) -> bool:
        return self.marker is not None and self.marker.region is None

    @property
    def complete_to(self) -> float:
        """All results of this epoch before this time have been delivered."""
        if self.marker is not None and self.ended:
            return self.marker.t
        known_to = self.gate.known_to()
        return float(known_to[0]) if known_to else -math.inf

    def _deliver(self, event: Event, found: list[Delivered]) -> None:
        if self.marker is None:
            raise Broken("a result came before the first marker")
        if event.t < self.marker.t - self._history:
            self.early += 1
        else:
            found.append(Delivered(self.marker.epoch, event, event.t < self.marker.t))
