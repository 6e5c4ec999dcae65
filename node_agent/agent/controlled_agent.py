"""Carries out the requests of an agent's owner, and makes the reports."""

from collections.abc import Mapping

from node_agent.agent.agent import Agent
from node_agent.agent.control import (
    AnyCommand,
    AskMetrics,
    AskStatus,
    Costs,
    OpenSources,
    Report,
    Request,
    Start,
    State,
    Stop,
)
from node_agent.linkstate.pushed import PushedLinkState
from node_agent.ports import Port, PortError
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segment_log import LogError


class ControlledAgent:
    """Carries out requests to one agent."""

    def __init__(self, agent: Agent, port: Port, pushed: PushedLinkState | None) -> None:
        self._agent = agent
        self._port = port
        self._pushed = pushed
        self._state = State.NEW

    def report(
        self,
        number: int = 0,
        error: str = "",
        ways: Mapping[str, float] = {},
        samples: tuple[Sample, ...] = (),
    ) -> Report:
        failure = self._agent.failure
        state = State.STOPPED if failure else self._state
        ready, now_ns = self._agent.ready, self._port.now_ns()
        used = {node: cost for node, cost in ways.items() if node in self._agent.sends_to}
        reaches, why = tuple(ways), str(failure or "")
        return Report(number, state, ready, now_ns, why, error, reaches, used, samples)

    def reject(self, error: str) -> Report:
        """Returns the report for something that is no request."""
        return self.report(error=error)

    async def handle(self, request: Request[AnyCommand]) -> Report:
        """Carries out a request. Returns the report."""
        if isinstance(request.do, AskStatus):
            return self.report(request.id, ways=await self._agent.ways())
        if isinstance(request.do, AskMetrics):
            return self.report(request.id, samples=await self._agent.metrics())
        return self.report(request.id, await self._carry_out(request.do))

    async def _carry_out(self, command: AnyCommand) -> str:
        """Returns why the command could not be carried out; empty if it was."""
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
                if self._pushed is None:
                    return "this agent has its costs from elsewhere"
                self._pushed.push(graph)
            case Stop(reason):
                await self._agent.stop(reason)
                self._state = State.STOPPED
        return ""
