"""The air between nodes, in model time: frames in, frames out, ground truth on the side.

A medium schedules its own events on a ``Schedule`` and never asks what drives it, so that one model serves
virtual time (the simulator's event loop) and real time (frames from TAP devices).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

BROADCAST = "*"


class Frame(NamedTuple):
    """``destination`` is a node or BROADCAST; ``size`` in bytes decides the airtime, ``payload`` is opaque."""

    source: str
    destination: str
    size: int
    payload: Any


class Schedule(Protocol):
    """Model time: what a medium is driven by."""

    def now_ns(self) -> int: ...

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> None: ...


OnFrame = Callable[[Frame], None]


class Medium(Protocol):
    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        """``received``: a frame arrived at ``node``. ``failed``: a unicast frame of ``node``'s was given up."""
        ...

    def send(self, frame: Frame) -> None:
        """Queue a frame at its source's interface; a full queue drops it and counts it."""
        ...

    def links(self) -> dict[str, dict[str, float]]:
        """Ground truth now: for each node, its neighbours and the cost of reaching them."""
        ...
