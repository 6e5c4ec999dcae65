"""One end of a virtual stream: connects a stream machine to the host's clock and to waiting coroutines."""

import asyncio
from collections.abc import Callable

from node_agent.ports import Address, Buffer, ConnectionLost, EndOfStream, Unreachable
from node_agent.ports.virtual.host import StreamKey, VirtualHost
from node_agent.ports.virtual.segment import Segment
from node_agent.ports.virtual.stream import Ending, Phase, StreamMachine


class VirtualStream:
    def __init__(self, host: VirtualHost, key: StreamKey, machine: StreamMachine) -> None:
        self._host = host
        self._key = key
        self._machine = machine
        self._now_ns = host.clock.now_ns
        self._partial = bytearray()  # read for a read_exactly that is not complete or was cancelled
        self._wanted = 0  # how many bytes the reader waits for
        self._wake_at: int | None = None
        self._reader: asyncio.Future[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._on_open: Callable[[], None] | None = None
        host.bind_stream(key, self)
        self._settle()

    @property
    def peer(self) -> Address:
        return Address(self._key[1], self._key[2])

    async def opened(self) -> None:
        while self._machine.phase is Phase.CONNECTING:
            await self._change()
        if self._machine.ending is Ending.REFUSED:
            raise Unreachable(f"nobody listens at {self.peer.host}:{self.peer.port}")
        self._raise_if_over()

    def read_ahead(self) -> None:
        """Does nothing: the modelled receive buffer is the limit."""

    def when_open(self, callback: Callable[[], None]) -> None:
        self._on_open = callback

    async def read_exactly(self, count: int) -> bytes:
        if self._reader is not None:
            raise RuntimeError("two coroutines read from the same stream")
        partial, machine = self._partial, self._machine
        while len(partial) < count or machine.closed_here:
            if machine.closed_here:
                self._raise_if_over()
            if data := machine.read(count - len(partial), self._now_ns()):
                partial += data
                if machine.outbox:
                    self._settle()
            elif machine.eof:
                raise EndOfStream(f"{self.peer.host}:{self.peer.port} closed the stream")
            else:
                self._raise_if_over()
                self._wanted = count
                await self._readable()
        data = bytes(partial[:count])
        del partial[:count]
        return data

    @property
    def received(self) -> int:
        return self._machine.arrived

    @property
    def unsent(self) -> int:
        return self._machine.unacknowledged

    def put(self, *data: Buffer) -> None:
        self._raise_if_over()
        # In one piece: each write may become segments of its own.
        self._machine.write(b"".join(data), self._now_ns())
        self._settle()

    async def drained(self) -> None:
        self._raise_if_over()
        while not self._machine.has_room:
            await self._change()
            self._raise_if_over()

    async def write(self, data: Buffer) -> None:
        self.put(data)
        await self.drained()

    def close(self) -> None:
        self._machine.close(self._now_ns())
        self._settle()

    def abort(self) -> None:
        self._machine.abort(self._now_ns())
        self._settle()

    def on_segment(self, segment: Segment) -> None:
        self._machine.on_segment(segment, self._now_ns())
        self._settle()

    def _settle(self) -> None:
        """Passes on what follows from the machine's last input: segments, callbacks, timers."""
        machine = self._machine
        if machine.outbox:
            outbox, machine.outbox = machine.outbox, []
            for segment in outbox:
                self._host.send(self._key[1], segment)
        if self._on_open is not None and machine.phase is Phase.OPEN:
            on_open, self._on_open = self._on_open, None
            on_open()
        over = machine.closed_here or machine.phase is Phase.CLOSED
        if self._reader is not None and (over or machine.eof or (machine.unread and not self._read_on())):
            _wake(self._reader)
        if self._waiting and (over or (machine.has_room and machine.phase is Phase.OPEN)):
            for waiter in self._waiting:
                _wake(waiter)
            self._waiting.clear()
        if machine.phase is Phase.CLOSED:
            self._host.release_stream(self._key)
            return
        deadline = machine.deadline_ns
        if deadline is not None and (self._wake_at is None or deadline < self._wake_at):
            self._wake_at = deadline
            self._host.clock.call_at_ns(deadline, self._on_wake, deadline)

    def _read_on(self) -> bool:
        """Reads for the waiting coroutine if that needs more than there is; waking it for each segment would
        cost much. Returns False if it must be woken.
        """
        # A host that sends to itself delivers several segments before it reads.
        if self._key[1] == self._host.address:
            return False
        data = self._machine.read_part(self._wanted - len(self._partial))
        self._partial += data
        return bool(data)

    def _on_wake(self, at_ns: int) -> None:
        # Timers are never cancelled: an outdated one is ignored, an early one sets the next.
        if at_ns == self._wake_at:
            self._wake_at = None
            self._machine.on_timer(at_ns)
            self._settle()

    async def _readable(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _raise_if_over(self) -> None:
        machine = self._machine
        if machine.ending is not None or machine.closed_here:
            raise ConnectionLost(
                f"stream with {self.peer.host}:{self.peer.port}: {machine.ending or 'closed'}"
            )


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
