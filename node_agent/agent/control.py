"""What an agent's owner may ask of it, and what it answers, whatever carries the words.

Every request is answered by one report with its id; a request with id 0 wants no answer. A report with id 0
answers nothing that was asked: the agent has failed, or what it was sent is no request.
"""

from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from node_agent.model.checked import Long, Moment
from node_agent.model.cost_graph import CostGraph


class Command(Struct, frozen=True, tag_field="do"):
    """Base of all that can be asked."""


class Start(Command, frozen=True, tag="start"):
    """Listen and be ready; sources stay shut."""


class OpenSources(Command, frozen=True, tag="open_sources"):
    """May be repeated."""


class Costs(Command, frozen=True, tag="costs"):
    """For an agent whose link state is told by its owner."""

    graph: CostGraph


class AskStatus(Command, frozen=True, tag="status"):
    """Nothing but the answer is wanted; it says whom the node reaches."""


class Stop(Command, frozen=True, tag="stop"):
    """The last one: the agent stops in order, answers, and its process ends."""

    reason: str


AnyCommand = Start | OpenSources | Costs | AskStatus | Stop


C = TypeVar("C", bound=Command, covariant=True)


class Request(Struct, Generic[C], frozen=True):
    do: C
    id: int = 0


class State(StrEnum):
    NEW = "new"
    RUNNING = "running"
    STOPPED = "stopped"


class Report(Struct, frozen=True):
    """``failure``: why the agent cannot go on. ``error``: why the request could not be met.

    ``reaches``, in answers to AskStatus: the other nodes that the routing layer knows a way to.
    """

    id: Long
    state: State
    ready: bool
    now_ns: Moment
    failure: str = ""
    error: str = ""
    reaches: tuple[str, ...] = ()
