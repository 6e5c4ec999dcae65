"""Starts, kills, restarts and stops a supervisor's agent, and says why it ended."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from node_agent.supervisor.agent_connection import AgentConnection, AgentState
from node_agent.supervisor.order import Program
from node_agent.supervisor.owner import Owner
from node_agent.supervisor.programs import AgentChild, CannotStart

STOP_S = 12.0
_KILL_S = 3.0
_LAST_WORDS_S = 1.0
NOT_RUNNING = "the agent is not running"


class SupervisedAgent:
    """``failure``: why it ended, unless its end was requested. When it has ended, it calls ``failed`` with a
    failure that nobody reported yet, and ``unanswered`` for each open request."""

    def __init__(
        self,
        program: Program,
        record: Path,
        owner: Callable[[], Owner | None],
        say: Callable[[str], None],
        failed: Callable[[str], None],
        unanswered: Callable[[Owner, int], None],
    ) -> None:
        self.failure = ""
        self._program = program
        self._record = record
        self._owner = owner
        self._say = say
        self._failed = failed
        self._unanswered = unanswered
        self._connection: AgentConnection | None = None
        self._attending: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    @property
    def last_state(self) -> AgentState | None:
        """Returns the agent's last report; None if it is not running."""
        return self._connection.last_state if self._connection else None

    def pass_on(self, owner: Owner, do: str, number: int, line: bytes) -> str:
        """Returns why the line was not passed on; empty if it was."""
        return self._connection.pass_on(owner, do, number, line) if self._connection else NOT_RUNNING

    async def start(self) -> str:
        """Returns why it was not started; empty if it was."""
        async with self._turn:
            if self._connection is not None:
                return "the agent is running"
            try:
                child = await AgentChild.start(self._program, self._record)
            except (CannotStart, OSError) as error:  # OSError: no room for its log
                return str(error)
            self.failure = ""
            self._connection = AgentConnection(child, self._owner, self._say)
            self._attending = asyncio.create_task(self._attend(self._connection))
            self._say("the agent has started")
            return ""

    async def kill(self) -> str:
        """Returns why it was not killed; empty if it was, and is gone."""
        async with self._turn:
            if self._connection is None or self._attending is None:
                return NOT_RUNNING
            self._connection.end_expected = True
            self._connection.child.signal(signal.SIGKILL)
            await self._attending
            return ""

    async def stop(self, reason: str) -> str:
        """Stops the agent, in order if possible. Returns what went wrong; empty if nothing did."""
        async with self._turn:
            if self._connection is None or self._attending is None:
                return ""
            child, trouble = self._connection.child, ""
            self._connection.stop(reason)
            if not await child.ends_within(STOP_S):
                trouble = f"the agent did not stop within {STOP_S:g} s and had to be killed"
                child.signal(signal.SIGTERM)
                if not await child.ends_within(_KILL_S):
                    child.signal(signal.SIGKILL)
            await self._attending
            return trouble

    async def _attend(self, connection: AgentConnection) -> None:
        listening = asyncio.create_task(connection.listen())
        ended = asyncio.create_task(connection.child.ended())
        await asyncio.wait([listening, ended], return_when=asyncio.FIRST_COMPLETED)
        if not await connection.child.ends_within(STOP_S):  # an agent without control is useless
            connection.child.signal(signal.SIGKILL)
        status, how = await ended
        await asyncio.wait([listening], timeout=_LAST_WORDS_S)
        listening.cancel()
        connection.child.writer.close()
        self._connection = None
        self._say(how)
        self.failure = connection.failure
        if not self.failure and not (connection.end_expected and status in (0, -signal.SIGKILL)):
            self.failure = how
            self._failed(how)
        for owner, number in connection.asked:
            self._unanswered(owner, number)
