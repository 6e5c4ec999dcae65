"""A client of the supervisor; one at a time owns the run."""

import asyncio
from contextlib import suppress

from msgspec import Struct

from node_agent.agent.control import Request
from node_agent.agent.control_lines import LONGEST_LINE
from node_agent.model.checked import Checked
from node_agent.supervisor.commands import AnySupervisorCommand

_UNREAD = 4 * 1024 * 1024
_FLUSH_S = 2.0


class _Command(Struct):
    do: str


class Envelope(Struct):
    """The part of a request that shows who must handle it."""

    do: _Command
    id: int = 0


_ENVELOPES: Checked[Envelope] = Checked(Envelope, LONGEST_LINE)
_REQUESTS: Checked[Request[AnySupervisorCommand]] = Checked(Request[AnySupervisorCommand], LONGEST_LINE)
read_envelope, read_request = _ENVELOPES.decode, _REQUESTS.decode


class Owner:
    """Writing never waits; a client that reads nothing at all is disconnected."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, line: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(line)
        if self._writer.transport.get_write_buffer_size() > _UNREAD:
            self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()

    async def flush(self) -> None:
        """Waits until the kernel has taken what was written, or the client is gone."""
        self._writer.close()
        with suppress(TimeoutError, OSError):
            await asyncio.wait_for(self._writer.wait_closed(), _FLUSH_S)
