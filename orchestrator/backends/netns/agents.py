"""One node's agent as a process in its namespace: started, spoken to, stopped, and its end explained."""

import asyncio
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self

from node_agent import process as agent_process
from node_agent.control import AnyCommand, AskStatus, Report, Stop
from node_agent.control_lines import LONGEST_LINE
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from orchestrator.backends.base import NodeOutcome, Status
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import Child, Entry, ForkServer, Launch

ENTRY = f"{agent_process.__name__}:{agent_process.run.__name__}"
ANSWER_S = 10.0
STOP_S = 12.0
END_S = 3.0


class AgentProcess:
    """``failure`` is empty as long as the agent does what it should."""

    def __init__(self, node: str, child: Child, channel: AgentChannel, log: Path) -> None:
        self.node = node
        self.failure = ""
        self._child = child
        self._channel = channel
        self._log = log
        self._stopping = False
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def launch(cls, server: ForkServer, node: str, namespace: Path, config: Path, log: Path) -> Self:
        """Raises ForkServerError."""
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

    def outcome(self) -> NodeOutcome:
        return NodeOutcome(self.node, Status.FAILED if self.failure else Status.OK, self.failure)

    async def ask(self, command: AnyCommand, timeout: float = ANSWER_S) -> Report | None:
        """None if it cannot answer any more, or could not do it: ``failure`` says why."""
        if self._watching.done():
            return None
        try:
            return await self._channel.ask(command, timeout)
        except AgentLost as error:
            # The end of the process, if that is the reason, explains more than a closed stream.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._watching), 0.5)
            self.failure = self.failure or str(error)
            return None

    async def is_ready(self) -> bool:
        report = await self.ask(AskStatus())
        return report is not None and report.ready

    def tell_latest(self, line: bytes) -> None:
        self._channel.tell_latest(line)

    async def stop(self, reason: str) -> None:
        """In order if it can, in any case within a bounded time."""
        self._stopping = True
        await self.ask(Stop(reason), STOP_S)
        with suppress(ForkServerError):
            if not await self._ended_within(END_S):
                self.failure = self.failure or f"did not end within {END_S:g} s of being stopped"
                await self._child.signal(signal.SIGKILL)
                await self._ended_within(END_S)

    async def close(self) -> None:
        """Let go of it; the fork server ends it. May be repeated."""
        self._stopping = True
        self._watching.cancel()
        await self._channel.close()

    async def _ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._child.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        try:
            status = await self._child.wait()
        except ForkServerError as error:
            self.failure = self.failure or str(error)
            return
        if status or not self._stopping:
            self.failure = self.failure or self._channel.failure or self._explain(status)

    def _explain(self, status: int) -> str:
        if status < 0:
            return f"the agent was ended by {signal.Signals(-status).name}"
        with suppress(OSError):
            if lines := self._log.read_text(errors="replace").strip().splitlines():
                return f"the agent ended with status {status}: {lines[-1]}"
        return f"the agent ended with status {status}"
