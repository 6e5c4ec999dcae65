"""One connection, seen from either end: tagged frames, keep-alives, and a watch on the other end."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic

from node_agent.ports import ConnectionLost, EndOfStream, Stream
from node_agent.transport.authentication import TAG_SIZE, Digests, Seal
from node_agent.transport.codec import Attachment, BatchT, Codec, MessageT
from node_agent.transport.errors import Forged, FrameError
from node_agent.transport.framing import (
    MAX_ATTACHED,
    MAX_HEADER,
    PRELUDE_SIZE,
    check_attachments,
    decode_prelude,
    encode,
)
from node_agent.transport.messages import Alive

_START = PRELUDE_SIZE + TAG_SIZE
MAX_UNSENT = MAX_ATTACHED + 2 * MAX_HEADER
"""Messages do not wait for room. If more than one large frame has gathered, the other end does not read."""
TICKS = 4
"""How often an end sends something within the time after which it counts as dead."""


def sealed(header: object, seal: Seal) -> bytes:
    prelude, head = encode(header)
    return b"".join((prelude, seal.tag(prelude, head), head))


def why_lost(connection: "Connection[Any, Any]", error: Exception) -> str:
    """Return one word for the record: why reading ``connection`` ended with ``error``."""
    match error:
        case FrameError():
            return error.reason
        case EndOfStream():
            return "closed"
    return "silent" if connection.silent else "broken"


class Connection(Generic[BatchT, MessageT]):
    """A connection after the greetings. Its owner must call ``read`` all the time."""

    def __init__(
        self,
        stream: Stream,
        sending: Seal,
        receiving: Seal,
        codec: Codec[Any, Any, BatchT, MessageT],
        digests: Digests,
    ) -> None:
        self._stream = stream
        self._sending = sending
        self._receiving = receiving
        self._codec = codec
        self._batch = codec.batch
        self._digests = digests
        self._timer: asyncio.TimerHandle | None = None
        self._heard = 0
        self._silent_ticks = 0

    @property
    def silent(self) -> bool:
        """Whether the other end has sent nothing for so long that it counts as dead."""
        return self._silent_ticks >= TICKS - 1

    def post(self, header: Alive | BatchT | MessageT) -> None:
        """Send a header that nothing follows, without waiting. Raise ConnectionLost."""
        if self._stream.unsent > MAX_UNSENT:
            self.abort()
        self._stream.put(sealed(header, self._sending))

    def post_batch(self, batch: BatchT, attachments: Sequence[bytes]) -> None:
        """Send a batch without waiting; the caller has awaited ``drained``. Attachments are not copied.

        Raise ConnectionLost, or FrameError if the header is too long; then nothing was sent.
        """
        self._stream.put(sealed(batch, self._sending), *attachments)

    async def drained(self) -> None:
        await self._stream.drained()

    async def read(self, limit: int = MAX_HEADER) -> Alive | BatchT | MessageT:
        """Return what arrives next, a batch with its attachments in place.

        Raise FrameError, or what the stream raises.
        """
        start = await self._stream.read_exactly(_START)
        prelude = start[:PRELUDE_SIZE]
        head = await self._stream.read_exactly(decode_prelude(prelude, limit))
        if not self._receiving.genuine(prelude, head, start[PRELUDE_SIZE:]):
            raise Forged("the peer sent a frame that is not its own, or not the next")
        header = self._codec.decode(head)
        if isinstance(header, self._batch) and (announced := self._codec.attachments(header)):
            return await self._attached(header, announced)
        return header

    async def _attached(self, batch: BatchT, announced: Sequence[Attachment]) -> BatchT:
        check_attachments([size for size, _ in announced])
        attachments = [await self._stream.read_exactly(size) for size, _ in announced]
        for (_, digest), data in zip(announced, attachments, strict=True):
            if self._digests.of(data) != digest:
                raise Forged("the peer sent a payload that is not the one announced")
        return self._codec.attach(batch, attachments)

    def watch(self, alive: Callable[[], Alive], dead_after: float) -> None:
        """Send ``alive()`` from now on; abort when the other end was silent for ``dead_after`` seconds."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            heard = self._stream.received
            self._silent_ticks = self._silent_ticks + 1 if heard == self._heard else 0
            self._heard = heard
            try:
                if self.silent:
                    self.abort()
                else:
                    self.post(alive())
                    self._timer = loop.call_later(dead_after / TICKS, tick)
            except ConnectionLost:
                self._timer = None

        self._timer = loop.call_later(dead_after / TICKS, tick)

    def close(self) -> None:
        """Close in order: what was sent still arrives. May be repeated."""
        self._stop_watching()
        self._stream.close()

    def abort(self) -> None:
        self._stop_watching()
        self._stream.abort()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
