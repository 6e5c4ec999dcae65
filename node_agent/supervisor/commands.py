"""Requests to a supervisor, in the format of the agent's control; it passes all others on to its agent."""

from msgspec import Struct

from node_agent.agent.control import Command


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


AnySupervisorCommand = Hello | Renew | AskClock | StartAgent | KillAgent | End | AskLease


class LeaseReport(Struct, frozen=True):
    """``failures``: what has ended unexpectedly."""

    left: float
    owned: bool
    agent: bool
    failures: tuple[str, ...] = ()
