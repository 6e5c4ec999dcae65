"""What an agent's owner may ask of it, and what it answers, whatever carries the words.

Every request is answered by one report with its id; a request with id 0 wants no answer. A report with id 0
answers nothing that was asked: the agent has failed, or what it was sent is no request.
"""

from enum import StrEnum

from msgspec import Struct

from node_agent.agent import Agent
from node_agent.linkstate.told import ToldLinkState
from node_agent.model.cost_graph import CostGraph
from node_agent.ports import Port, PortError
from node_agent.telemetry.segment_log import LogError


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


class Request(Struct, frozen=True):
    do: AnyCommand
    id: int = 0


class State(StrEnum):
    NEW = "new"
    RUNNING = "running"
    STOPPED = "stopped"


class Report(Struct, frozen=True):
    """``failure``: why the agent cannot go on. ``error``: why the request could not be met.

    ``reaches``, in answers to AskStatus: the other nodes that the routing layer knows a way to.
    """

    id: int
    state: State
    ready: bool
    now_ns: int
    failure: str = ""
    error: str = ""
    reaches: tuple[str, ...] = ()


class ControlledAgent:
    """Turns requests into what they mean for one agent."""

    def __init__(self, agent: Agent, port: Port, told: ToldLinkState | None) -> None:
        self._agent = agent
        self._port = port
        self._told = told
        self._state = State.NEW

    def report(self, number: int = 0, error: str = "", reaches: tuple[str, ...] = ()) -> Report:
        failure = self._agent.failure
        state = State.STOPPED if failure else self._state
        ready, now_ns = self._agent.ready, self._port.now_ns()
        return Report(number, state, ready, now_ns, str(failure or ""), error, reaches)

    def reject(self, error: str) -> Report:
        """The answer to what is no request at all."""
        return self.report(error=error)

    async def obey(self, request: Request) -> Report:
        if isinstance(request.do, AskStatus):
            return self.report(request.id, reaches=await self._agent.reaches())
        return self.report(request.id, await self._carry_out(request.do))

    async def _carry_out(self, command: AnyCommand) -> str:
        """Why it could not be done; empty if it was."""
        match command:
            case Start():
                if self._state is not State.NEW:
                    return "started before"
                try:
                    await self._agent.start()
                except (PortError, LogError) as error:
                    self._state = State.STOPPED
                    return str(error)
                self._state = State.RUNNING
            case OpenSources():
                if self._state is not State.RUNNING:
                    return "not running"
                self._agent.open_sources()
            case Costs(graph):
                if self._told is None:
                    return "this agent has its costs from elsewhere"
                self._told.tell(graph)
            case Stop(reason):
                await self._agent.stop(reason)
                self._state = State.STOPPED
        return ""
