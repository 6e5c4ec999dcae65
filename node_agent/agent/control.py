"""The requests of an agent's owner, and the agent's reports, whatever carries them.

Every request is answered by one report with its id; a request with id 0 needs no answer. A report with id 0
answers no request: the agent has failed, or it was sent something that is no request.
"""

from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from node_agent.model.checked import Long, Moment
from node_agent.model.cost_graph import CostGraph
from node_agent.telemetry.metrics import Sample


class Command(Struct, frozen=True, tag_field="do"):
    """Base of all requests."""


class Start(Command, frozen=True, tag="start"):
    """Listen and get ready; sources stay closed."""


class OpenSources(Command, frozen=True, tag="open_sources"):
    """Let sources send. May be repeated."""


class Costs(Command, frozen=True, tag="costs"):
    """New costs, for an agent whose owner pushes its link state."""

    graph: CostGraph


class AskStatus(Command, frozen=True, tag="status"):
    """Only report; the report says which nodes this one reaches."""


class AskMetrics(Command, frozen=True, tag="metrics"):
    """Only report; the report has samples of all metrics."""


class Stop(Command, frozen=True, tag="stop"):
    """The last request: the agent stops in order, answers, and its process ends."""

    reason: str


AnyCommand = Start | OpenSources | Costs | AskStatus | AskMetrics | Stop


C = TypeVar("C", bound=Command, covariant=True)


class Request(Struct, Generic[C], frozen=True):
    do: C
    id: int = 0


class State(StrEnum):
    NEW = "new"
    RUNNING = "running"
    STOPPED = "stopped"


class Report(Struct, frozen=True, omit_defaults=True):
    """``failure``: why the agent cannot continue. ``error``: why the request could not be carried out.

    In answers to AskStatus, ``reaches``: the other nodes that the routing layer has a route to; ``costs``: of
    reaching those of them that applications of this node may send to. ``samples``: in answers to AskMetrics.
    ``data``: bytes of a file, in answers of a supervisor that was asked for them, and ``at`` says which bytes
    they are.
    """

    id: Long
    state: State
    ready: bool
    now_ns: Moment
    failure: str = ""
    error: str = ""
    reaches: tuple[str, ...] = ()
    costs: dict[str, float] = {}
    samples: tuple[Sample, ...] = ()
    data: bytes = b""
    at: tuple[Long, ...] = ()
