"""The network interface of a virtual node, as the medium implements it.

The media are in the orchestrator; anything that implements ``Interface`` will do.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

BROADCAST = "*"


class Frame(Struct, frozen=True, gc=False):
    """``destination``: a node or BROADCAST; ``size`` (bytes) determines
    the airtime; ``payload`` is opaque."""

    source: str
    destination: str
    size: int
    payload: Any


OnFrame = Callable[[Frame], None]


class Interface(Protocol):
    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        """Connects a node. ``received`` is called when a frame arrives at ``node``, ``failed`` when a unicast
        frame of its own was given up.
        """
        ...

    def send(self, frame: Frame) -> None: ...
