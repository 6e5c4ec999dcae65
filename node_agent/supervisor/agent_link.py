"""The way between a supervisor's owner and its agent: lines go through as they are, answers to who asked.

Owners number their requests independently, so an answer that is late for one must not reach the next.
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


class Heard(Struct, frozen=True):
    """How the agent is, as it said last."""

    state: State = State.NEW
    ready: bool = False


class AgentLink:
    """``failure``: what the agent said of itself. ``end_expected``: it was stopped or killed on demand."""

    def __init__(
        self, child: AgentChild, owner: Callable[[], Owner | None], say: Callable[[str], None]
    ) -> None:
        self.child = child
        self.heard = Heard()
        self.failure = ""
        self.end_expected = False
        self.asked: deque[tuple[Owner, int]] = deque()
        """And not answered yet."""
        self._owner = owner
        self._say = say

    def pass_on(self, owner: Owner, do: str, number: int, line: bytes) -> str:
        """Why not; empty if it was."""
        if self.child.writer.transport.get_write_buffer_size() > _UNREAD:
            return "the agent does not read what it is told"
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
        """Until its control is closed."""
        try:
            while line := await self.child.reader.readline():
                self._hear(line)
        except (ConnectionError, ValueError) as error:
            self._say(f"the agent's control is lost: {error}")
        self.child.writer.close()

    def _hear(self, line: bytes) -> None:
        try:
            report = _REPORTS.decode(line)
        except Refused as error:
            self._say(f"the agent said what is no report: {error}")
            return
        self.heard = Heard(report.state, report.ready)
        self.failure = self.failure or report.failure
        owner = self._owner()
        if owner is not None and (report.id == 0 or self._asker(report.id) is owner):
            owner.write(line)

    def _asker(self, number: int) -> Owner | None:
        """It answers one after the other: who asked before this one gets no answer any more."""
        while self.asked and number != _OWN_ID:
            asker, asked = self.asked.popleft()
            if asked == number:
                return asker
        return None
