"""Runs one node's agent as a process in its namespace: starts, asks and stops it, explains why it ended."""

import asyncio
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self

from node_agent.agent import process as agent_process
from node_agent.agent.control import AnyCommand, AskMetrics, AskStatus, Report, Stop
from node_agent.agent.control_lines import LONGEST_LINE
from node_agent.telemetry.metrics import Sample
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch
from orchestrator.backends.netns.watched import Watched
from orchestrator.services.program import Entry

ENTRY = f"{agent_process.__name__}:{agent_process.run.__name__}"
ANSWER_S = 10.0
STOP_S = 12.0


class AgentProcess(Watched):
    """One agent's process. ``failure`` is empty as long as the agent works."""

    def __init__(self, node: str, child: Child, channel: AgentChannel, log: Path) -> None:
        self.node = node
        self._channel = channel
        super().__init__("the agent", child, log)

    @classmethod
    async def launch(cls, server: ForkServer, node: str, namespace: Path, config: Path, log: Path) -> Self:
        """Starts the process. Raises ForkServerError."""
        ours, theirs = socket.socketpair()
        control = theirs.fileno()
        launch = Launch(
            Entry(ENTRY, {"config": str(config)}), namespace, stdin=control, stdout=control, stderr=log
        )
        try:
            with theirs:
                child = await server.spawn(launch)
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE)
        except BaseException:
            ours.close()
            raise
        return cls(node, child, AgentChannel(reader, writer), log)

    async def ask(self, command: AnyCommand, timeout: float = ANSWER_S) -> Report | None:
        """Sends a command, returns its answer; None if the agent is lost or refused: ``failure`` says why."""
        if self._watching.done():
            return None
        try:
            return await self._channel.ask(command, timeout)
        except AgentLost as error:
            # If the process ended, its exit explains more than the closed stream.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._watching), 0.5)
            self.failure = self.failure or str(error)
            return None

    async def status(self) -> Report | None:
        return await self.ask(AskStatus())

    async def metrics(self, timeout: float) -> tuple[Sample, ...]:
        """Asks for samples of its metrics. Raises AgentLost, which fails nothing: nobody needs the answer."""
        return (await self._channel.ask(AskMetrics(), timeout)).samples

    def send_latest(self, line: bytes) -> None:
        self._channel.send_latest(line)

    async def stop(self, reason: str) -> None:
        """Stops the agent in order if possible, and always within a bounded time."""
        self._stopping = True
        await self.ask(Stop(reason), STOP_S)
        await self.end(None)

    async def kill(self) -> None:
        """Kills the agent at once and without warning, as a fault does."""
        await self.end(signal.SIGKILL)
        await self.close()

    async def close(self) -> None:
        await super().close()
        await self._channel.close()

    def _explained(self, status: int) -> str:
        return self._channel.failure or super()._explained(status)
