"""Media that the real-time loop drives: it says how far model time may go, and passes on updates as bytes."""

import marshal
import random
from collections.abc import Callable, Sequence
from dataclasses import fields
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

import numpy as np

from orchestrator.radio.channel import Channel
from orchestrator.radio.contention import NEVER
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.exchanges import Deliver, Pull
from orchestrator.radio.pipes import Pipes, PipeTable, unpacked_table
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.station import Outgoing

# The loop does not need the SNR; the helper records it from the channel itself.
_SENT = [field.name for field in fields(Channel) if field.name not in ("radio", "snr_db")]
_NOT_SENT = np.empty((0, 0))

MOST_AT_ONCE = 64
"""Frames that are taken from one node before others have their turn."""
AGAIN_NS = 100_000


class StationCounts(Protocol):
    """What a medium counts of a node; lists are by receiver."""

    index: int
    link_attempts: list[int]
    link_received: list[int]
    link_acknowledged: list[int]
    link_timeouts: list[int]
    link_given_up: list[int]
    acknowledged: int
    broadcasts: int
    timeouts: int
    given_up: int
    air_ns: int


class Driven(Protocol):
    now_ns: int

    @property
    def stations(self) -> Sequence[StationCounts]: ...

    def offer(self, node: int, now_ns: int) -> None:
        """Tells that ``node`` has something to send."""
        ...

    def run_until(self, until_ns: int) -> None:
        """Handles all events up to and including ``until_ns``."""
        ...

    def run_events(self, until_ns: int) -> int:
        """Does the same, but time stops at the last event. Returns when the next event is."""
        ...

    def next_delivery_ns(self) -> int:
        """Returns a time before which nothing is delivered unless something is offered."""
        ...

    def apply(self, data: bytes, now_ns: int) -> None:
        """Lets hold from now on what the helper has packed."""
        ...


def _ignore(sender: int, frame: Outgoing) -> None:
    """Does nothing: a frame that was given up is lost, and the kernel above finds out by itself."""


class DrivenDcf(Dcf):
    __slots__ = ()

    def __init__(self, channel: Channel, mac: Mac, rng: random.Random, pull: Pull, deliver: Deliver) -> None:
        super().__init__(channel, mac, rng, pull, deliver, _ignore)

    def apply(self, data: bytes, now_ns: int) -> None:
        self.move(unpacked_channel(data, self.channel.radio), now_ns)


def packed_channel(channel: Channel) -> bytes:
    return marshal.dumps({name: getattr(channel, name) for name in _SENT})


def unpacked_channel(data: bytes, radio: Radio) -> Channel:
    return Channel(radio=radio, snr_db=_NOT_SENT, **marshal.loads(data))


class DrivenPipes(Pipes):
    """Takes frames from nodes at once: those for one link must not wait for those for another."""

    def __init__(self, table: PipeTable, queue_limit: int, pull: Pull, deliver: Deliver) -> None:
        super().__init__(len(table), queue_limit, self.call, deliver, _ignore)
        self.now_ns = 0
        self._pull = pull
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        self.use(table)

    def offer(self, node: int, now_ns: int) -> None:
        self.now_ns = now_ns
        for _ in range(MOST_AT_ONCE):
            frame = self._pull(node)
            if frame is None:
                return
            self.send(node, frame, now_ns)
        self.call(now_ns + AGAIN_NS, self.offer, node, now_ns + AGAIN_NS)

    def run_until(self, until_ns: int) -> None:
        self.run_events(until_ns)
        self.now_ns = until_ns

    def run_events(self, until_ns: int) -> int:
        events = self._events
        while events and events[0][0] <= until_ns:
            self.now_ns, _, do, arguments = heappop(events)
            do(*arguments)
        return self.next_delivery_ns()

    def next_delivery_ns(self) -> int:
        return self._events[0][0] if self._events else NEVER

    def apply(self, data: bytes, now_ns: int) -> None:
        self.use(unpacked_table(data))

    def call(self, when_ns: int, do: Callable[..., None], *arguments: Any) -> None:
        heappush(self._events, (when_ns, next(self._numbers), do, arguments))
