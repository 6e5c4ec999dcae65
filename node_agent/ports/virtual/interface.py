"""The network interface of a virtual node: what it hands to the medium, and the medium as seen from here.

The media themselves live with the orchestrator; anything of this shape will do.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

BROADCAST = "*"


class Frame(NamedTuple):
    """``destination`` is a node or BROADCAST; ``size`` (bytes) decides the airtime; ``payload`` is opaque."""

    source: str
    destination: str
    size: int
    payload: Any


OnFrame = Callable[[Frame], None]


class Interface(Protocol):
    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        """``received``: a frame arrived at ``node``. ``failed``: a unicast frame of its own was given up."""
        ...

    def send(self, frame: Frame) -> None: ...
