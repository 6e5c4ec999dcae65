"""Defines the medium between nodes, in model time: nodes send frames, and it delivers them.

A medium schedules its own events on a ``Schedule`` and does not know what drives it. So one model serves
virtual time (the simulator's event loop) and real time (frames from TAP devices).
"""

from collections.abc import Callable
from typing import Any, Protocol

from node_agent.ports.virtual.interface import BROADCAST, Frame, OnFrame

__all__ = ["BROADCAST", "Frame", "Medium", "OnFrame", "Schedule"]


class Schedule(Protocol):
    """The model time that drives a medium."""

    def now_ns(self) -> int: ...

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> None: ...

    def free_until_ns(self) -> int:
        """Returns up to when, inclusive, nothing else happens."""
        ...

    def jump_to_ns(self, when_ns: int) -> None:
        """Makes it ``when_ns`` now, which must not be after ``free_until_ns``."""
        ...


class Medium(Protocol):
    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        """Connects a node. ``received``: a frame arrived at ``node``. ``failed``: a unicast frame of its own
        was given up.
        """
        ...

    def send(self, frame: Frame) -> None:
        """Queues a frame at the interface of its source. A full queue drops and counts it."""
        ...
