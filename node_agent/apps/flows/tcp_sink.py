"""The sinks of TCP flows at a node: who may connect, and what arrives."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from node_agent.apps.flows.account import ReceivedAccount
from node_agent.apps.flows.events import MOST_SECONDS, FlowPacketReceived
from node_agent.apps.flows.model import Flow
from node_agent.apps.flows.tcp_source import GREETING_S, REFUSED
from node_agent.apps.flows.udp import LARGEST_MOMENT, Record
from node_agent.apps.flows.wire import BEGIN_SIZE, CHUNK_HEADER, HELLO_SIZE, UNKNOWN, FlowKey, Session
from node_agent.model.refusals import Refusals
from node_agent.ports import Port, PortError, Stream
from node_agent.transport.authentication import ID_SIZE, NONCE_SIZE
from node_agent.transport.half_open import HalfOpen

ACKNOWLEDGE_S = 0.25
ACKNOWLEDGE_BYTES = 64 * 1024
ALIVE_S = 2.0
"""A sink acknowledges at least so often: while its source hears it, it lives."""
MOST_UNREAD = 64 * 1024
"""Bytes of acknowledgements that the source has not read: beyond that it is cut off."""


class TcpSink:
    """The sink's end of a flow. The newest connection that has proved to be the source's is the flow's."""

    def __init__(
        self, flow: Flow, key: FlowKey, opened_ns: Callable[[], int], port: Port, record: Record
    ) -> None:
        self.flow = flow
        self.key = key
        self._opened_ns = opened_ns
        self._port = port
        self._record = record
        self._account: ReceivedAccount | None = None
        self._received = 0
        """Chunks, in the source's count."""
        self._stream: Stream | None = None

    def known(self, boot: int) -> int | None:
        """How many chunks this sink has of that start of the source; None: the start is over."""
        if self._account is None or boot > self._account.source_boot:
            return UNKNOWN
        return self._received if boot == self._account.source_boot else None

    async def receive(self, stream: Stream, session: Session, boot: int, first: int) -> str | None:
        """Take what comes until the stream ends; returns why it is refused, None if it is not."""
        known = self.known(boot)
        if known == UNKNOWN:
            self.sample()
            self._account = ReceivedAccount(self.flow.name, boot, self._opened_ns())
            self._received = first
        elif known != first:
            return "replayed"
        if self._stream is not None:
            self._stream.abort()
        self._stream = stream
        stream.read_ahead()
        alive = asyncio.create_task(self._stay_alive(stream, session))
        try:
            return await self._take(stream, session)
        finally:
            alive.cancel()

    def sample(self) -> None:
        if self._account is not None and (sample := self._account.sample(self._port.now_ns())) is not None:
            self._record(sample)

    async def _take(self, stream: Stream, session: Session) -> str | None:
        account, unacknowledged = self._account, 0
        assert account is not None
        while True:
            chunk = session.read_chunk(await stream.read_exactly(CHUNK_HEADER))
            if chunk is None:
                return "forged"
            if (
                chunk.number != self._received
                or chunk.second > MOST_SECONDS
                or chunk.sent_ns > LARGEST_MOMENT
            ):
                return "impossible"
            await stream.read_exactly(chunk.size - CHUNK_HEADER)
            if self._stream is not stream:
                return None
            self._received += 1
            account.take(chunk.number, chunk.second, chunk.size, chunk.sent_ns, self._port.now_ns())
            if self.flow.records == "packets":
                boot = account.source_boot
                self._record(
                    FlowPacketReceived(self.flow.name, boot, chunk.number, chunk.size, chunk.sent_ns)
                )
            unacknowledged += chunk.size
            if unacknowledged >= ACKNOWLEDGE_BYTES:
                unacknowledged = 0
                self._acknowledge(stream, session)

    async def _stay_alive(self, stream: Stream, session: Session) -> None:
        said, silent_s = -1, 0.0
        while self._stream is stream:
            silent_s += ACKNOWLEDGE_S
            if said != self._received or silent_s >= ALIVE_S:
                said, silent_s = self._received, 0.0
                self._acknowledge(stream, session)
            await self._port.sleep(ACKNOWLEDGE_S)

    def _acknowledge(self, stream: Stream, session: Session) -> None:
        if stream.unsent > MOST_UNREAD:
            stream.abort()  # the source does not read
            return
        with suppress(PortError):  # who reads the stream is told, too
            stream.put(session.acknowledgement(self._received))


class TcpSinks:
    """Who connects to the application's port: sources of flows that end here, and nobody else."""

    def __init__(
        self, sinks: Mapping[bytes, TcpSink], peers: Mapping[str, str], port: Port, refusals: Refusals
    ) -> None:
        """``sinks``: by the ids of their flows' keys. ``peers``: the hosts of the other nodes."""
        self._sinks = sinks
        self._port = port
        self._refusals = refusals
        flows = Counter(sink.flow.source for sink in sinks.values())
        self._half_open = HalfOpen(peers, flows.__getitem__, self._evicted)

    async def handle(self, stream: Stream) -> None:
        """Raises PortError when the stream is lost."""
        task = asyncio.current_task()
        assert task is not None, "a port handles each stream in a task"
        self._half_open.enter(task, stream)
        try:
            async with asyncio.timeout(GREETING_S):
                greeted = await self._greet(stream, task)
        except TimeoutError:
            greeted = "silent"
        finally:
            self._half_open.leave(task)
        if isinstance(greeted, str):
            self._refuse(stream, stream.peer.host, greeted)
            return
        sink, session, boot, first = greeted
        reason = await sink.receive(stream, session, boot, first)
        if reason is not None:
            self._refuse(stream, sink.flow.source, reason)

    async def _greet(
        self, stream: Stream, task: "asyncio.Task[None]"
    ) -> "str | tuple[TcpSink, Session, int, int]":
        """Who it is; or why it is refused."""
        hello = await stream.read_exactly(HELLO_SIZE)
        sink = self._sinks.get(hello[:ID_SIZE])
        if sink is None:
            return "stranger"
        boot = sink.key.boot_in(hello)
        if boot is None:
            return "forged"
        known = sink.known(boot)
        if known is None:
            return "replayed"
        self._half_open.has_greeted(task, sink.flow.source)
        session = sink.key.session(hello, self._port.fresh_bytes(NONCE_SIZE))
        stream.put(session.welcome(known))
        first = session.read_begin(await stream.read_exactly(BEGIN_SIZE))
        return "forged" if first is None else (sink, session, boot, first)

    def _evicted(self, host: str) -> None:
        self._refusals.add(REFUSED, host, "crowded")

    def _refuse(self, stream: Stream, source: str, reason: str) -> None:
        stream.abort()
        self._refusals.add(REFUSED, source, reason)
