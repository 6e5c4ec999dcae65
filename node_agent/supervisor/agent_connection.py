"""Connects a supervisor's owner with its agent: passes on lines, and answers to who asked.

Owners number their requests independently, so a late answer to one owner must not reach the next.
"""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from node_agent.agent.control import Report, Request, State, Stop
from node_agent.agent.control_lines import LONGEST_LINE, encode
from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.owner import Owner
from node_agent.supervisor.programs import AgentChild

_OWN_ID = -1
_UNREAD = 1024 * 1024
_REPORTS: Checked[Report] = Checked(Report, LONGEST_LINE)


class AgentState(Struct, frozen=True):
    """The agent's last reported state."""

    state: State = State.NEW
    ready: bool = False


class AgentConnection:
    """``failure``: what the agent reported about itself.
    ``end_expected``: it was stopped or killed on request."""

    def __init__(
        self, child: AgentChild, owner: Callable[[], Owner | None], say: Callable[[str], None]
    ) -> None:
        self.child = child
        self.last_state = AgentState()
        self.failure = ""
        self.end_expected = False
        self.asked: deque[tuple[Owner, int]] = deque()
        """Requests without an answer so far."""
        self._owner = owner
        self._say = say

    def pass_on(self, owner: Owner, do: str, number: int, line: bytes) -> str:
        """Returns why the line was not passed on; empty if it was."""
        if self.child.writer.transport.get_write_buffer_size() > _UNREAD:
            return "the agent does not read its requests"
        if do == Stop.__struct_config__.tag:
            self.end_expected = True
        if number:
            self.asked.append((owner, number))
        self.child.writer.write(line)
        return ""

    def stop(self, reason: str) -> None:
        self.end_expected = True
        self.child.writer.write(encode(Request(Stop(reason), _OWN_ID)))

    async def listen(self) -> None:
        """Reads the agent's reports until its control is closed."""
        try:
            while line := await self.child.reader.readline():
                self._receive(line)
        except (ConnectionError, ValueError) as error:
            self._say(f"the agent's control is lost: {error}")
        self.child.writer.close()

    def _receive(self, line: bytes) -> None:
        try:
            report = _REPORTS.decode(line)
        except Refused as error:
            self._say(f"the agent sent something that is not a report: {error}")
            return
        self.last_state = AgentState(report.state, report.ready)
        self.failure = self.failure or report.failure
        owner = self._owner()
        if owner is not None and (report.id == 0 or self._asker(report.id) is owner):
            owner.write(line)

    def _asker(self, number: int) -> Owner | None:
        """Returns who sent the request. The agent answers in order, so
        earlier open requests get no answer any more."""
        while self.asked and number != _OWN_ID:
            asker, asked = self.asked.popleft()
            if asked == number:
                return asker
        return None
