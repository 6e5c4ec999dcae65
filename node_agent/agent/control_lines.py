"""Control over a byte stream: one JSON object a line, over a pipe, a socket or an SSH channel."""

import asyncio
import os
import socket
import stat
import sys
from collections.abc import Awaitable, Callable

import msgspec

from node_agent.agent.control import AnyCommand, Command, Report, Request, Stop
from node_agent.model.checked import Checked, Refused

LONGEST_LINE = 64 * 1024 * 1024
"""In bytes. A cost graph of a thousand nodes is one line."""

_requests: Checked[Request[AnyCommand]] = Checked(Request[AnyCommand], LONGEST_LINE)


def encode(message: Request[Command] | Report) -> bytes:
    return msgspec.json.encode(message) + b"\n"


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handle: Callable[[Request[AnyCommand]], Awaitable[Report]],
    reject: Callable[[str], Report],
) -> str:
    """Handles requests until one is to stop, or until the other side is gone. Returns which of the two it
    was.
    """
    try:
        while line := await reader.readline():
            try:
                request = _requests.decode(line)
            except Refused as error:
                writer.write(encode(reject(f"not a request: {error}")))
                await writer.drain()
                continue
            report = await handle(request)
            if request.id:
                writer.write(encode(report))
                await writer.drain()
            if isinstance(request.do, Stop):
                return request.do.reason
    except (ConnectionError, ValueError) as error:  # ValueError: a line longer than the limit
        return f"control lost: {error}"
    return "control closed"


async def open_standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Makes standard input and output the control channel; from now on, ``print`` writes to stderr.

    They are two pipes, or one socket for both (sshd does either).
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    if stat.S_ISSOCK(os.fstat(source).st_mode):
        os.close(sink)
        return await asyncio.open_unix_connection(sock=socket.socket(fileno=source), limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(sink, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
