"""What a supervisor is asked besides what it passes on to its agent, in the same words and lines."""

from msgspec import Struct

from node_agent.agent.control import Command


class Hello(Command, frozen=True, tag="hello"):
    """The first line of who wants to own the run. A new owner takes over; the one before is let go."""

    protocol: int


class Renew(Command, frozen=True, tag="renew"):
    """The lease ends so many seconds from now, and not before."""

    seconds: float


class AskClock(Command, frozen=True, tag="clock"):
    """``now_ns`` of the answer is the node's clock just before it was sent."""


class StartAgent(Command, frozen=True, tag="start_agent"):
    """Its process starts; it is then told ``Start`` itself. May be repeated when the agent is gone."""


class KillAgent(Command, frozen=True, tag="kill_agent"):
    """Without a word to it, as a fault would have it. The answer comes when it is gone."""


class End(Command, frozen=True, tag="end"):
    """Everything ends in order. The answer comes when all but the supervisor itself is gone."""

    reason: str


class AskLease(Command, frozen=True, tag="lease"):
    """The first and only line of who just wants to look: answered with a LeaseReport, takes nothing over."""


AnySupervisorCommand = Hello | Renew | AskClock | StartAgent | KillAgent | End | AskLease


class LeaseReport(Struct, frozen=True):
    """``failures``: what has ended that should not have."""

    left: float
    owned: bool
    agent: bool
    failures: tuple[str, ...] = ()
