"""The sending side of the connection between two replicas.

A link is best effort: what was handed over completely may still be lost when the connection breaks later.
It reconnects when the next tuple is to be sent, not before a jittered back-off has passed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from node_agent.model.tuples import StreamTuple
from node_agent.ports import Address, ConnectionLost, Port, PortError, Stream, TimedOut
from node_agent.transport.framing import (
    PRELUDE_SIZE,
    FrameError,
    Header,
    Hello,
    Welcome,
    decode_header,
    decode_prelude,
    encode,
    encode_tuple,
)

CONNECT_TIMEOUT = 5.0
BACKOFF_FIRST = 0.1
BACKOFF_LAST = 3.0


class Link(Protocol):
    """A way to one downstream replica."""

    async def send(self, item: StreamTuple) -> None:
        """Return once ``item`` has been handed over and there is room for more; raises PortError.

        If it fails or is cancelled, ``item`` was not handed over and may be sent elsewhere; it may have
        arrived all the same.
        """
        ...

    async def close(self) -> None: ...


async def read_frame(stream: Stream) -> tuple[Header, bytes]:
    header_size, payload_size = decode_prelude(await stream.read_exactly(PRELUDE_SIZE))
    header = decode_header(await stream.read_exactly(header_size))
    return header, await stream.read_exactly(payload_size) if payload_size else b""


class OutgoingLink:
    def __init__(self, port: Port, to: Address, hello: Hello) -> None:
        self._port = port
        self._to = to
        self._hello = hello
        self._stream: Stream | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._failures = 0
        self._retry_at = 0.0

    @property
    def connected(self) -> bool:
        return self._stream is not None

    async def send(self, item: StreamTuple) -> None:
        frame = encode_tuple(item)
        try:
            stream = self._stream or await self._connect()
            await stream.write(frame)
        except BaseException:
            # Part of the frame may be out: nothing that follows on this stream would make sense.
            self._drop()
            raise

    async def close(self) -> None:
        """Close in order, so that what was handed over still arrives. May be repeated."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
            self._watcher = None

    async def _connect(self) -> Stream:
        await self._port.sleep(max(0.0, self._retry_at - asyncio.get_running_loop().time()))
        self._back_off()
        stream = await self._port.connect(self._to, CONNECT_TIMEOUT)
        try:
            await self._greet(stream)
        except BaseException:
            stream.abort()
            raise
        self._failures = 0
        self._retry_at = 0.0
        self._stream = stream
        self._watcher = asyncio.create_task(self._watch(stream), name=f"link to {self._hello.receiver}")
        return stream

    async def _greet(self, stream: Stream) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await stream.write(encode(self._hello))
                header, _ = await read_frame(stream)
        except TimeoutError:
            raise TimedOut(f"{self._hello.receiver} did not answer the hello") from None
        except FrameError as error:
            raise ConnectionLost(f"{self._hello.receiver} answered the hello: {error}") from error
        if not isinstance(header, Welcome):
            raise ConnectionLost(f"{self._hello.receiver} did not welcome the hello")

    def _back_off(self) -> None:
        """Set the earliest time of the next attempt; undone if this one succeeds."""
        pause = min(BACKOFF_FIRST * 2**self._failures, BACKOFF_LAST) * self._port.random.uniform(0.5, 1.0)
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + pause

    async def _watch(self, stream: Stream) -> None:
        """Notice a broken connection before the next tuple is put into it; the peer has nothing to say."""
        with suppress(PortError):
            await stream.read_exactly(1)
        if self._stream is stream:
            self._stream.abort()
            self._stream = None

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.abort()
            self._stream = None
        if self._watcher is not None:
            self._watcher.cancel()


class LocalLink:
    """To a replica on the same node: a call instead of a connection."""

    def __init__(self, deliver: Callable[[StreamTuple], Awaitable[None]]) -> None:
        self._deliver = deliver

    async def send(self, item: StreamTuple) -> None:
        await self._deliver(item)

    async def close(self) -> None:
        pass
