"""One connection between two replicas, seen from either end: tagged frames, and a watch on the other end."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.ports import ConnectionLost, EndOfStream, Stream
from node_agent.transport.authentication import TAG_SIZE, Digests, Seal
from node_agent.transport.framing import (
    MAX_HEADER,
    MAX_PAYLOAD,
    PRELUDE_SIZE,
    Forged,
    FrameError,
    decode_header,
    decode_prelude,
    encode,
    outside_sizes,
    pack,
    unpack,
)
from node_agent.transport.messages import Alive, Data, Header, PassedOn

_START = PRELUDE_SIZE + TAG_SIZE
MAX_UNSENT = MAX_PAYLOAD + 2 * MAX_HEADER
"""Control messages do not wait for room; where more than one large frame has gathered, nobody reads."""
TICKS = 4
"""An end makes itself heard so many times in the time after which it is taken for dead."""


def sealed(header: Header, seal: Seal) -> bytes:
    prelude, head = encode(header)
    return b"".join((prelude, seal.tag(prelude, head), head))


def why_lost(connection: "Connection", error: Exception) -> str:
    """Why a connection is gone, by what reading it ended with: a word for the record."""
    match error:
        case FrameError():
            return error.reason
        case EndOfStream():
            return "closed"
    return "silent" if connection.silent else "broken"


class Connection:
    """After the greetings. The owner reads all the time: it is what keeps the other end believing in us."""

    def __init__(self, stream: Stream, sending: Seal, receiving: Seal, digests: Digests) -> None:
        self._stream = stream
        self._digests = digests
        self._sending = sending
        self._receiving = receiving
        self._timer: asyncio.TimerHandle | None = None
        self._heard = 0
        self._silent_ticks = 0

    @property
    def silent(self) -> bool:
        """Whether the other end has said nothing for so long that it is taken for dead."""
        return self._silent_ticks >= TICKS - 1

    def post(self, header: Header) -> None:
        """Raises ConnectionLost."""
        if self._stream.unsent > MAX_UNSENT:
            self.abort()
        self._stream.put(sealed(header, self._sending))

    def post_items(
        self,
        items: Sequence[StreamTuple],
        sizes: Sequence[int],
        floors: Mapping[str, int] = {},
        passed_on: PassedOn | None = None,
    ) -> None:
        """Large payloads are not copied. Raises ConnectionLost."""
        header, payloads = pack(items, sizes, self._digests.of, floors, passed_on)
        self._stream.put(sealed(header, self._sending), *payloads)

    async def drained(self) -> None:
        await self._stream.drained()

    async def read(self, limit: int = MAX_HEADER) -> Header:
        """Data comes with all its payloads in place. Raises FrameError, or what the stream raises."""
        start = await self._stream.read_exactly(_START)
        prelude = start[:PRELUDE_SIZE]
        head = await self._stream.read_exactly(decode_prelude(prelude, limit))
        if not self._receiving.genuine(prelude, head, start[PRELUDE_SIZE:]):
            raise Forged("the peer sent a frame that is not its own, or not the next")
        header = decode_header(head)
        if not isinstance(header, Data) or not header.outside:
            return header
        payloads = [await self._stream.read_exactly(size) for size in outside_sizes(header)]
        for announced, payload in zip(header.outside, payloads, strict=True):
            if self._digests.of(payload) != announced.digest:
                raise Forged("the peer sent a payload that is not the one announced")
        return Data(unpack(header, payloads), (), header.floors, header.passed_on)

    def watch(self, alive: Callable[[], Alive], dead_after: float) -> None:
        """Say ``alive`` from now on, and abort when the other end has said nothing for so many seconds."""
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
        """In order: what was sent still arrives. May be repeated."""
        self._stop_watching()
        self._stream.close()

    def abort(self) -> None:
        self._stop_watching()
        self._stream.abort()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
