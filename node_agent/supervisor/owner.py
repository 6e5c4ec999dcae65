"""A supervisor's client, from its first line on; there is one at a time that owns the run."""

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
    """Of a request: enough to see whom it is for."""

    do: _Command
    id: int = 0


_ENVELOPES: Checked[Envelope] = Checked(Envelope, LONGEST_LINE)
_REQUESTS: Checked[Request[AnySupervisorCommand]] = Checked(Request[AnySupervisorCommand], LONGEST_LINE)
read_envelope, read_request = _ENVELOPES.decode, _REQUESTS.decode


class Owner:
    """Writing never waits; who reads nothing at all is let go."""

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
        """What was said is with the kernel, or nobody wants it."""
        self._writer.close()
        with suppress(TimeoutError, OSError):
            await asyncio.wait_for(self._writer.wait_closed(), _FLUSH_S)
