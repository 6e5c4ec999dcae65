"""Requests to a supervisor, in the format of the agent's control; it passes all others on to its agent."""

from typing import Annotated

from msgspec import Meta, Struct

from node_agent.agent.control import Command
from node_agent.model.checked import Count as Number

MOST_TAIL = 256 * 1024
"""Bytes of telemetry in one answer."""
MOST_PICTURE = 512 * 1024
"""Bytes of a picture; a larger one is not sent."""
LONGEST_FOLDER = 200
FOLDER = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"


class Hello(Command, frozen=True, tag="hello"):
    """The first line of a client that wants to own the run. A new owner replaces the one before."""

    protocol: int


class Renew(Command, frozen=True, tag="renew"):
    """Sets the lease to end ``seconds`` from now."""

    seconds: float


class AskClock(Command, frozen=True, tag="clock"):
    """Asks for the node's clock: ``now_ns`` of the answer was read just before it was sent."""


class StartAgent(Command, frozen=True, tag="start_agent"):
    """Starts the agent's process, which then gets its own ``Start``.
    May be repeated when the agent is gone."""


class KillAgent(Command, frozen=True, tag="kill_agent"):
    """Kills the agent without warning, as a fault does. The answer comes when it is gone."""


class End(Command, frozen=True, tag="end"):
    """Ends everything in order. The answer comes when all but the supervisor itself is gone."""

    reason: str


class AskLease(Command, frozen=True, tag="lease"):
    """The only line of a client that just wants to look: answered with a LeaseReport, without taking over."""


class ReadSegment(Command, frozen=True, tag="read_segment"):
    """Asks for telemetry from ``offset`` on of a segment, or from the beginning of the next one that exists
    if there is nothing more. ``data`` of the answer has at most ``MOST_TAIL`` bytes, and ``at`` is the boot,
    the index and the offset at which they begin.
    """

    boot: Number
    index: Number
    offset: Number


class ReadPicture(Command, frozen=True, tag="read_picture"):
    """Asks for the latest picture in one of the folders of pictures in the node's record, unless it has not
    changed since ``stamp``. ``at`` of the answer is the picture's own stamp.
    """

    folder: Annotated[str, Meta(max_length=LONGEST_FOLDER, pattern=FOLDER)]
    stamp: Number = 0


AnySupervisorCommand = (
    Hello | Renew | AskClock | StartAgent | KillAgent | End | AskLease | ReadSegment | ReadPicture
)


class LeaseReport(Struct, frozen=True):
    """``failures``: what has ended unexpectedly."""

    left: float
    owned: bool
    agent: bool
    failures: tuple[str, ...] = ()
