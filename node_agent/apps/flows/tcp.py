"""TCP flows of a node: sources that write chunks and connect again when a connection breaks, and sinks."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from node_agent.apps.flows.account import ReceivedAccount, SentAccount
from node_agent.apps.flows.events import MOST_SECONDS, FlowPacketReceived, FlowPacketSent
from node_agent.apps.flows.model import Flow
from node_agent.apps.flows.schedule import NS
from node_agent.apps.flows.transfer import Transfer
from node_agent.apps.flows.udp import LARGEST_MOMENT, Record, Sending
from node_agent.apps.flows.wire import (
    ACKNOWLEDGEMENT_SIZE,
    BEGIN_SIZE,
    CHUNK_HEADER,
    HELLO_SIZE,
    UNKNOWN,
    WELCOME_SIZE,
    FlowKey,
    Session,
    nonce_of,
)
from node_agent.model.refusals import Refusals
from node_agent.ports import ConnectionLost, Port, PortError, Stream
from node_agent.transport.authentication import ID_SIZE, NONCE_SIZE
from node_agent.transport.half_open import HalfOpen

CONNECT_S = 10.0
GREETING_S = 5.0
FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 5.0
ACKNOWLEDGE_S = 0.25
ACKNOWLEDGE_BYTES = 64 * 1024
DEAD_AFTER_S = 10.0
"""A sink that is silent for so long is taken for lost: it acknowledges every ``ALIVE_S`` whatever happens."""
ALIVE_S = 2.0
MOST_UNREAD = 64 * 1024
CHUNKS_AT_ONCE = 16
REFUSED = "flow connection"


class TcpSource:
    """The source's end of a flow: ``run`` returns when the sink has everything that there is to send."""

    def __init__(
        self,
        sending: Sending,
        transfer: Transfer,
        account: SentAccount,
        port: Port,
        refusals: Refusals,
        record: Record,
    ) -> None:
        self._flow, self._key, self._to, self._boot = sending
        self._transfer = transfer
        self._account = account
        self._port = port
        self._refusals = refusals
        self._record = record
        self._news = asyncio.Event()
        self._recorded = 0

    async def run(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._transfer.done:
            await self._until_due()
            connections = self._account.connections
            try:
                await self._converse(await self._port.connect(self._to, CONNECT_S))
            except PortError:
                self._account.failures += 1
                if self._account.connections > connections:
                    retry_s = FIRST_RETRY_S
                await self._port.sleep(retry_s)
                retry_s = min(2 * retry_s, LONGEST_RETRY_S)

    def sample(self) -> None:
        now_ns = self._port.now_ns()
        self._transfer.offer(now_ns)
        if (sample := self._account.sample(now_ns)) is not None:
            self._record(sample)

    async def _until_due(self) -> None:
        """No connection is made before there is something to send."""
        while (wake_ns := self._transfer.wake_ns()) is not None and wake_ns > (now := self._port.now_ns()):
            await self._port.sleep((wake_ns - now) / NS + 1e-6)

    async def _converse(self, stream: Stream) -> None:
        """Raises PortError when the connection is lost before all is done."""
        reader: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(GREETING_S):
                session = await self._greet(stream)
            self._account.connections += 1
            stream.read_ahead()
            reader = asyncio.create_task(self._read(stream, session))
            await self._write(stream, session, reader)
            stream.close()
        except TimeoutError:
            stream.abort()
            raise ConnectionLost(f"{self._to.host} does not answer the greeting") from None
        except BaseException:
            stream.abort()
            raise
        finally:
            if reader is not None:
                reader.cancel()

    async def _greet(self, stream: Stream) -> Session:
        hello = self._key.hello(self._port.fresh_bytes(NONCE_SIZE), self._boot)
        stream.put(hello)
        welcome = await stream.read_exactly(WELCOME_SIZE)
        session = self._key.session(hello, nonce_of(welcome))
        chunks = session.read_welcome(welcome)
        first = None if chunks is None else self._transfer.reconnected(chunks)
        if first is None:
            raise self._refusal("forged" if chunks is None else "impossible")
        stream.put(session.begin(first))
        return session

    async def _write(self, stream: Stream, session: Session, reader: "asyncio.Task[None]") -> None:
        transfer, at_once = self._transfer, 0
        while not transfer.done:
            if reader.done():
                raise ConnectionLost("the sink's acknowledgements have ended")
            self._news.clear()
            chunk = transfer.next_chunk(self._port.now_ns())
            if chunk is None:
                await self._wait(transfer.wake_ns())
                continue
            stream.put(*session.chunk(chunk))
            if self._flow.records == "packets" and chunk.number >= self._recorded:
                self._recorded = chunk.number + 1
                self._record(FlowPacketSent(self._flow.name, chunk.number, chunk.size))
            await stream.drained()
            at_once += 1
            if at_once % CHUNKS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _wait(self, wake_ns: int | None) -> None:
        """For an acknowledgement, the loss of the connection, or the moment that something comes due."""
        seconds = None if wake_ns is None else max(wake_ns - self._port.now_ns(), 0) / NS + 1e-6
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _read(self, stream: Stream, session: Session) -> None:
        try:
            while True:
                async with asyncio.timeout(DEAD_AFTER_S):
                    chunks = session.read_acknowledgement(await stream.read_exactly(ACKNOWLEDGEMENT_SIZE))
                if chunks is None or not self._transfer.acknowledge(chunks):
                    raise self._refusal("forged" if chunks is None else "impossible")
                self._news.set()
        except (PortError, TimeoutError):
            stream.abort()
        finally:
            self._news.set()

    def _refusal(self, reason: str) -> ConnectionLost:
        self._refusals.add(REFUSED, self._flow.sink, reason)
        return ConnectionLost(f"{self._flow.sink} sent something {reason}")


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
