"""The air between nodes, in model time: frames in, frames out.

A medium schedules its own events on a ``Schedule`` and never asks what drives it, so that one model serves
virtual time (the simulator's event loop) and real time (frames from TAP devices).
"""

from collections.abc import Callable
from typing import Any, Protocol

from node_agent.ports.virtual.interface import BROADCAST, Frame, OnFrame

__all__ = ["BROADCAST", "Frame", "Medium", "OnFrame", "Schedule"]


class Schedule(Protocol):
    """Model time: what a medium is driven by."""

    def now_ns(self) -> int: ...

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> None: ...


class Medium(Protocol):
    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        """``received``: a frame arrived at ``node``. ``failed``: a unicast frame of its own was given up."""
        ...

    def send(self, frame: Frame) -> None:
        """Queue a frame at its source's interface; a full queue drops it and counts it."""
        ...
