"""The source's end of a TCP flow: writes chunks, and connects again when a connection breaks."""

import asyncio
from contextlib import suppress

from node_agent.apps.flows.account import SentAccount
from node_agent.apps.flows.events import FlowPacketSent
from node_agent.apps.flows.schedule import NS
from node_agent.apps.flows.transfer import Transfer
from node_agent.apps.flows.udp import Record, Sending
from node_agent.apps.flows.wire import ACKNOWLEDGEMENT_SIZE, WELCOME_SIZE, Session, nonce_of
from node_agent.model.refusals import Refusals
from node_agent.ports import ConnectionLost, Port, PortError, Stream
from node_agent.transport.authentication import NONCE_SIZE

CONNECT_S = 10.0
GREETING_S = 5.0
FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 5.0
DEAD_AFTER_S = 10.0
"""A sink that is silent for so long is taken for lost. It acknowledges every 2 s whatever happens."""
CHUNKS_AT_ONCE = 16
REFUSED = "flow connection"
"""The name under which refused connections are counted."""


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
