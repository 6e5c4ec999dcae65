"""Answers queries over TCP, one request a connection. Limits what a client can cost."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

from node_agent.olsr.info.request import BUSY, TIMEOUT, TOO_LARGE, Dialect, answer, error, parse
from node_agent.olsr.info.snapshot import Snapshot

MOST_CLIENTS = 16
_MOST_CONNECTIONS = 64  # beyond that, connections are closed without an answer
LONGEST_REQUEST = 8192
_REQUEST_WITHIN_S = 1.0
_PAUSE_S = 0.05
_ANSWER_WITHIN_S = 5.0
_FRESH_S = 0.1


class CannotListen(Exception):
    """The message is one sentence: which port cannot be used, and why."""


class InfoServer:
    """All dialects answer from one snapshot while it is fresh, so their answers agree."""

    def __init__(self, snapshot: Callable[[], Snapshot], host: str = "127.0.0.1") -> None:
        self._take = snapshot
        self._host = host
        self._servers: list[asyncio.Server] = []
        self._clients: dict[asyncio.StreamWriter, None] = {}
        self._last: tuple[float, Snapshot] | None = None

    async def listen(self, dialect: Dialect, port: int) -> int:
        """Returns the port, which is chosen if 0 is given."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(dialect, reader, writer)

        try:
            server = await asyncio.start_server(serve, self._host, port, limit=LONGEST_REQUEST)
        except (OSError, OverflowError) as problem:
            reason = os.strerror(problem.errno or 0) if isinstance(problem, OSError) else "not a port number"
            raise CannotListen(f"port {port} of {self._host} cannot be used for queries: {reason}") from None
        self._servers.append(server)
        chosen: int = server.sockets[0].getsockname()[1]
        return chosen

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._clients):
            writer.transport.abort()

    async def _serve(
        self, dialect: Dialect, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self._clients) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._clients[writer] = None
        try:
            async with asyncio.timeout(_REQUEST_WITHIN_S + _ANSWER_WITHIN_S):
                writer.write(await self._answer(dialect, reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError):
            pass  # the client is gone or silent
        finally:
            self._clients.pop(writer, None)
            writer.transport.abort()

    async def _answer(self, dialect: Dialect, reader: asyncio.StreamReader) -> bytes:
        data = await _request(reader)
        if data is None:
            return error(False, TIMEOUT)
        request = parse(data)
        if len(self._clients) > MOST_CLIENTS:
            return error(request.headers, BUSY)
        if len(data) >= LONGEST_REQUEST:
            return error(request.headers, TOO_LARGE)
        return answer(dialect, request, self._snapshot)

    def _snapshot(self) -> Snapshot:
        now = time.monotonic()
        if self._last is None or now - self._last[0] > _FRESH_S:
            self._last = now, self._take()
        return self._last[1]


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """Reads a line, or with HTTP all headers: unread bytes would turn the close into a reset.

    Old clients of olsrd send no line end; a short pause ends their request.
    """
    data = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(_REQUEST_WITHIN_S):
            while len(data) < LONGEST_REQUEST and not _is_complete(data):
                async with asyncio.timeout(_PAUSE_S if data else None):
                    if not (more := await reader.read(LONGEST_REQUEST - len(data))):
                        return data
                data += more
            return data
    return data or None


def _is_complete(data: bytes) -> bool:
    if data[:4].upper() == b"GET ":
        return b"\r\n\r\n" in data or b"\n\n" in data
    return b"\n" in data
