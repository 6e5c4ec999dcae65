"""A medium whose links lose a known share of the frames, whatever their size and other traffic."""

import random
from collections.abc import Mapping

from orchestrator.radio.medium import BROADCAST, Frame, OnFrame, Schedule

AIRTIME_NS = 1_000_000

Losses = Mapping[str, Mapping[str, float]]
"""Sender → receiver → probability that a frame is lost; pairs that are not listed do not hear each other."""


class LossyAir:
    """Implements ``Medium``; nothing is retried."""

    def __init__(self, schedule: Schedule, losses: Losses, seed: int) -> None:
        self._schedule = schedule
        self._losses = losses
        self._random = random.Random(f"lossy air/{seed}")
        self._received: dict[str, OnFrame] = {}

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        self._received[node] = received

    def send(self, frame: Frame) -> None:
        for receiver, loss in self._losses[frame.source].items():
            if frame.destination in (receiver, BROADCAST) and self._random.random() >= loss:
                at = self._schedule.now_ns() + AIRTIME_NS
                self._schedule.call_at_ns(at, self._received[receiver], frame)

    def links(self) -> dict[str, dict[str, float]]:
        return {
            node: {peer: 1 / ((1 - loss) * (1 - self._losses[peer][node])) for peer, loss in peers.items()}
            for node, peers in self._losses.items()
        }
