"""The AODV daemon's query interface over TCP: /counters and /routes (/routes/ADDRESS/… starts searches)."""

import asyncio

import msgspec

from node_agent.aodv.daemon import AodvDaemon
from node_agent.aodv.reader import INFO_PORT, Routes

_LONGEST_REQUEST = 16384
_WITHIN_S = 2.0
_MOST_CLIENTS = 16


class InfoServer:
    """Answers one request a connection, then closes it."""

    def __init__(self, daemon: AodvDaemon, host: str = "127.0.0.1") -> None:
        self._daemon = daemon
        self._host = host
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.StreamWriter, None] = {}

    async def listen(self, port: int = INFO_PORT) -> int:
        """Returns the port, which is chosen if 0 is given. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, self._host, port, limit=_LONGEST_REQUEST)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._clients):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients[writer] = None
        try:
            async with asyncio.timeout(_WITHIN_S):
                if len(self._clients) <= _MOST_CLIENTS:
                    words = (await reader.readuntil(b"\n")).decode("latin-1").split()
                    while (await reader.readuntil(b"\n")).strip():
                        pass  # reads the headers: unread bytes would turn the close into a reset
                    writer.write(self._answer(words[1] if len(words) > 1 else ""))
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, silent or endless
        finally:
            self._clients.pop(writer, None)
            writer.transport.abort()

    def _answer(self, path: str) -> bytes:
        kind, *addresses = path.strip("/").split("/")
        if kind == "counters" and not addresses:
            return _with_headers("200 OK", self._counters())
        if kind == "routes":
            try:
                for address in addresses:
                    self._daemon.seek(address)
            except ValueError as error:
                return _with_headers("400 Bad Request", {"error": str(error)})
            return _with_headers("200 OK", Routes(self._daemon.address, self._daemon.hops()))
        return _with_headers("404 Not Found", {"error": "there are /counters and /routes[/ADDRESS…]"})

    def _counters(self) -> dict[str, object]:
        counters = self._daemon.counters
        return {
            "counters": counters.by_kind(),
            "drops": counters.drops,
            "refusals": tuple(counters.refusals),
            "suppressed": counters.suppressed,
            "held": self._daemon.core.held,
        }


def _with_headers(status: str, content: object) -> bytes:
    body = msgspec.json.encode(content)
    head = f"HTTP/1.0 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
