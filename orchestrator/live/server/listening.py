"""Connections of the server: their number, how long a request may take to arrive, how slowly it may be read.

aiohttp closes a connection on which no whole request has arrived in ``REQUEST_S``. This module bounds their
number, closes those whose reader does not read, and turns what is no HTTP into one line of JSON. When all
places are taken, a new connection gets that of the oldest on which no request was admitted yet: who may
not ask cannot keep out who may.
"""

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader

from orchestrator.live.server.answers import Refusal, refused
from orchestrator.live.server.guard import is_loopback

MOST_CONNECTIONS = 256
MOST_OF_A_PEER = 64
MOST_OF_THIS_MACHINE = 192
"""Browsers and programs of this machine are one peer."""
REQUEST_S = 10.0
STALLED_S = 20.0
LINGERING_S = 2.0
MOST_LINE = 4096
MOST_HEADER = 8190
MOST_HEADERS = 64
MOST_BODY = 64 * 1024
_SWEEP_S = 2.0

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Handler(web.RequestHandler):
    """One connection."""

    __slots__ = ("_left", "_left_since", "_server", "admitted", "peer")

    def __init__(self, server: "Server", **settings: Any) -> None:
        super().__init__(server, **settings)
        self._server = server
        self.peer = ""
        self.admitted = False
        """Whether somebody has made a request on it who may: its place is not given away."""
        self._left = 0
        self._left_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        has_place = self._server.take_place(self)
        super().connection_made(transport)
        if not has_place:
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.leave_place(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def close_if_stalled(self, now: float) -> None:
        """Aborts the connection if nothing of what waits to be sent has been taken for ``STALLED_S``."""
        if self.transport is None:
            return
        left = self.transport.get_write_buffer_size()
        if left == 0 or left != self._left:
            self._left, self._left_since = left, now
        elif now - self._left_since > STALLED_S:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what is no HTTP, and errors of our own: those are printed here, never sent."""
        if exc is not None and status == 500 and not isinstance(exc, ConnectionError):
            traceback.print_exception(exc, file=sys.stderr)
        texts = {400: "this is not a request", 504: "it took too long"}
        answer = refused(Refusal(HTTPStatus(status), texts.get(status, "the server failed to answer")))
        answer.force_close()
        return answer


class Server(web.Server):
    def __init__(self, answer: Answer) -> None:
        super().__init__(
            answer,
            request_factory=self._request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=REQUEST_S,
            lingering_time=LINGERING_S,
            max_line_size=MOST_LINE,
            max_field_size=MOST_HEADER,
            max_headers=MOST_HEADERS,
            auto_decompress=False,
        )
        self._places: dict[Handler, None] = {}
        """Oldest first."""

    def __call__(self) -> Handler:
        return Handler(self, loop=self._loop, **self._kwargs)

    def take_place(self, new: Handler) -> bool:
        """Returns False if there is none: all that could be given away belong to somebody who may ask."""
        of_the_peer = [each for each in self._places if each.peer == new.peer]
        most = MOST_OF_THIS_MACHINE if is_loopback(new.peer) else MOST_OF_A_PEER
        for those, limit in ((of_the_peer, most), (list(self._places), MOST_CONNECTIONS)):
            if len(those) >= limit and not self._give_away(those):
                return False
        self._places[new] = None
        return True

    def _give_away(self, places: Iterable[Handler]) -> bool:
        oldest = next((each for each in places if not each.admitted), None)
        if oldest is None:
            return False
        self.leave_place(oldest)
        oldest.abort()
        return True

    def leave_place(self, handler: Handler) -> None:
        self._places.pop(handler, None)

    @property
    def taken(self) -> int:
        """The number of open connections."""
        return len(self._places)

    async def keep_sweeping(self) -> None:
        """Closes connections whose reader does not read, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = asyncio.get_running_loop().time()
            for handler in self.connections:
                if isinstance(handler, Handler):
                    handler.close_if_stalled(now)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: Any,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message, payload, protocol, writer, task, self._loop, client_max_size=MOST_BODY
        )


def keep(request: web.BaseRequest) -> None:
    """Keeps the connection of a request that was admitted when places get scarce."""
    if isinstance(request.protocol, Handler):
        request.protocol.admitted = True
