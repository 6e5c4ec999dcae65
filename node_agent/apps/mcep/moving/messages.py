"""What brokers say to each other of a query whose operators may move."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from node_agent.migration.live.messages import Message
from node_agent.migration.live.values import Item
from node_agent.migration.messages import Message as Planned

Kind = Literal["host", "stream", "sink", "home"]


class Role(NamedTuple):
    """Of a broker, for one operator. ``name``: of a stream or sink."""

    kind: Kind
    name: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """From a role of an operator to another one."""

    operator: str
    sender: Role
    receiver: Role
    message: Message


@dataclass(frozen=True, slots=True)
class Relocate:
    """From the home to the broker of a joint: it is to go to another one."""

    producer: str
    successor: str
    version: int
    to: str


@dataclass(frozen=True, slots=True)
class Handed:
    """A joint comes, in one or several pieces. ``taken``: outputs of the producer that it has;
    ``producer_at``, ``producer_term``, ``successor_at``, ``successor_term``: who owns both operators;
    ``emitted``: items that it has made; ``kept``: those that are still needed; ``last``: the last piece."""

    producer: str
    successor: str
    version: int
    taken: int
    producer_at: str
    producer_term: int
    successor_at: str
    successor_term: int
    emitted: int
    kept: tuple[Item, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Arrived:
    """To the home: the joint is here."""

    producer: str
    successor: str
    version: int


@dataclass(frozen=True, slots=True)
class JointAt:
    """From the home to all brokers: where a joint is now."""

    producer: str
    successor: str
    version: int
    broker: str


@dataclass(frozen=True, slots=True)
class Agreed:
    """Between planners of operators, and between them and brokers. ``operator``: who is told, or whose room
    it is about; ``sender``: an operator or source, empty for the broker that sends it."""

    operator: str
    sender: str
    message: Planned


@dataclass(frozen=True, slots=True)
class Rates:
    """From a broker to all who plan: bytes a second of what begins there."""

    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Hosted:
    """From the home to all who plan: where an operator is now."""

    operator: str
    host: str


@dataclass(frozen=True, slots=True)
class Wish:
    """From a planner to the home: where its operator should go, from when on copying begins, and when it
    should be there."""

    operator: str
    to: str
    begin_at: float
    deadline: float
    why: str


@dataclass(frozen=True, slots=True)
class Visited:
    """From a broker to the home: a client came into its area."""

    client: str
    t: float


Planning = Agreed | Rates | Hosted | Wish | Visited
Said = Told | Relocate | Handed | Arrived | JointAt | Planning


class Moves(NamedTuple):
    """One of these, of a query."""

    query: str
    said: Said


class Happened(NamedTuple):
    """Something to report. ``what``: a host's ``Note``, or ``ordered`` and ``ended`` of the home."""

    query: str
    operator: str
    what: str
    migration: int
    detail: str = ""
    source: str = ""
    target: str = ""
