"""What operators say to their neighbours and to brokers while they agree on plans."""

from dataclasses import dataclass

from node_agent.migration.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanUpdated:
    """An operator wants to follow a new plan, and asks its neighbours whether they hold still meanwhile.

    ``final``: it does not ask. Sources and consumers say where they will be; nobody can change that.
    """

    version: int
    plan: Plan
    final: bool = False


@dataclass(frozen=True, slots=True)
class PlanAccepted:
    """The neighbour holds still until it hears what became of that version."""

    version: int


@dataclass(frozen=True, slots=True)
class PlanDecided:
    """The version is followed from now on (``kept``), or was withdrawn."""

    version: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Reserve:
    """Asks a broker for room during spans of time; the end of a span is not part of it."""

    version: int
    need: float
    spans: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ReserveReply:
    version: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Revoke:
    """Gives back what was reserved for that version."""

    version: int


Message = PlanUpdated | PlanAccepted | PlanDecided | Reserve | ReserveReply | Revoke


@dataclass(frozen=True, slots=True)
class Sent:
    """A message for an operator, or for a broker."""

    to: str
    message: Message
