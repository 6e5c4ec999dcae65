"""The accepting side of connections.

A connection begins with greetings that prove which node speaks. The application's ``Admission`` then decides
whether it may connect; if not, the connection is closed and counted. A connection that is open is read all
the time. What waits for the application is bounded by the sender's credit, which comes back as the
application takes the items.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, cast

from node_agent.model.refusals import Refusals
from node_agent.ports import Address, ConnectionLost, Listener, Port, PortError, Stream
from node_agent.transport.admission import Admission
from node_agent.transport.authentication import NONCE_SIZE, Credentials, Digests, session_seals
from node_agent.transport.codec import BatchT, Codec, MessageT
from node_agent.transport.connection import Connection
from node_agent.transport.credit import Grant
from node_agent.transport.errors import FrameError
from node_agent.transport.greeting import MAX_GREETING, read_hello, welcome_frame
from node_agent.transport.half_open import HalfOpen
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Hello, Pair, Welcome
from node_agent.transport.outgoing import REFUSED, OnFailure, OnMessage, ignore_message
from node_agent.transport.receiving import OnBatch, ReceivingSession

HELLO_TIMEOUT = 5.0
SUPERSEDED_GRACE = 10.0
"""Seconds: how long the items of a connection may wait after its sender has opened another in its place."""


class ConnectionServer(Generic[BatchT, MessageT]):
    """Accepts the connections of one application on one node.

    ``admission`` decides who may connect. ``peers``: the hosts of the other nodes, by node; connections from
    other hosts get little room, so that strangers cannot keep the peers out. ``digests`` is shared by the
    application's connections. ``on_batch`` takes what arrives, or raises Impossible; ``on_message`` gets the
    messages; ``on_failure`` gets errors that are not the peer's fault. ``refusals`` counts the connections
    that were closed for what they sent or did not send.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        codec: Codec[Any, Any, BatchT, MessageT],
        admission: Admission[BatchT, MessageT],
        peers: Mapping[str, str],
        limits: ConnectionLimits,
        digests: Digests,
        refusals: Refusals,
        on_batch: OnBatch[BatchT],
        on_failure: OnFailure,
        on_message: OnMessage[MessageT] = ignore_message,
    ) -> None:
        self._port = port
        self._keys = credentials.incoming("connection")
        self._codec = codec
        self._admission = admission
        self._limits = limits
        self._digests = digests
        self._refusals = refusals
        self._on_batch = on_batch
        self._on_failure = on_failure
        self._on_message = on_message
        self._listener: Listener | None = None
        self._connections: dict[asyncio.Task[None], None] = {}
        self._half_open = HalfOpen(peers, admission.expected, partial(self._refuse, reason="crowded"))
        self._sessions: dict[Pair, ReceivingSession[BatchT, MessageT]] = {}
        self._superseded: dict[Pair, ReceivingSession[BatchT, MessageT]] = {}

    async def open(self, port: int) -> Address:
        """Listen, and return where: the system chooses a port if ``port`` is 0."""
        self._listener = await self._port.listen(port, self._accept)
        return self._listener.address

    def send_message(self, pair: Pair, message: MessageT) -> bool:
        """Send a message to the sender of ``pair`` at once. Return False if there is no connection."""
        session = self._sessions.get(pair)
        if session is None:
            return False
        try:
            session.connection.post(message)
        except ConnectionLost:
            return False
        return True

    def waiting(self, receiver: str) -> int:
        """Return how many items have arrived for this endpoint that it has not taken yet."""
        return sum(session.waiting for pair, session in self._sessions.items() if pair.receiver == receiver)

    async def close(self) -> None:
        """Accept no more, and end every connection. May be repeated."""
        if self._listener is not None:
            self._listener.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)

    async def _accept(self, stream: Stream) -> None:
        # A task of our own, so that close() can end it whatever the port does with the one it made.
        connection = asyncio.create_task(self._serve(stream), name="incoming connection")
        self._connections[connection] = None
        connection.add_done_callback(lambda done: self._connections.pop(done, None))
        self._half_open.enter(connection, stream)
        await asyncio.wait([connection])

    async def _serve(self, stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        session: ReceivingSession[BatchT, MessageT] | None = None
        try:
            session = await self._greet(stream, task)
            self._half_open.leave(task)
            if session is not None:
                await self._attend(session)
        except Exception as error:
            self._on_failure(error)
        finally:
            if session is None:
                stream.abort()  # nothing is owed to a stranger, not even a file descriptor for a while

    async def _greet(
        self, stream: Stream, task: "asyncio.Task[None]"
    ) -> ReceivingSession[BatchT, MessageT] | None:
        source, codec = stream.peer.host, self._codec
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                key, hello, frame = await read_hello(stream, self._keys)
                source = key.node
                self._half_open.has_greeted(task, key.node)
                if (reason := self._refusal(hello, key.node)) is not None:
                    self._refuse(source, reason)
                    return None
                nonce = self._port.fresh_bytes(NONCE_SIZE)
                receiving, sending = session_seals(key, frame, nonce)
                window = self._limits.window_items, self._limits.window_bytes
                stream.put(welcome_frame(key, Welcome(*window), nonce, sending))
                connection = Connection(stream, sending, receiving, codec, self._digests)
                if not isinstance(await connection.read(MAX_GREETING), Alive):
                    raise FrameError("the peer did not confirm its hello")
        except TimeoutError:
            self._refuse(source, "timeout")
        except FrameError as error:
            self._refuse(source, error.reason)
        except PortError:
            # The path to a peer may have broken. A stranger who leaves without a word is worth counting.
            if not self._half_open.is_peer(stream.peer.host):
                self._refuse(source, "left")
        else:
            stream.read_ahead()
            checks = self._admission.checks(hello.pair)
            return ReceivingSession(hello.pair, key.node, connection, codec, checks, Grant(*window), task)
        return None

    def _refusal(self, hello: Hello, node: str) -> str | None:
        if hello.version != self._codec.version:
            return "version"
        return self._admission.refusal(hello.pair, node)

    async def _attend(self, session: ReceivingSession[BatchT, MessageT]) -> None:
        """Read until the connection ends; the application then takes what has arrived."""
        pair, connection = session.pair, session.connection
        self._supersede(pair)
        self._sessions[pair] = session
        taker = asyncio.create_task(session.pass_on(self._on_batch), name=f"items of {pair.sender}")
        taker.add_done_callback(partial(self._taker_ended, session))
        connection.watch(session.alive, self._limits.dead_after)
        try:
            await self._read(session)
        except (FrameError, PortError) as error:
            # A lost connection is nobody's fault: the other side notices and reconnects.
            if isinstance(error, FrameError):
                self._refuse(session.node, error.reason)
            connection.close()
            session.finish()
            await asyncio.wait([taker])
        finally:
            connection.close()
            taker.cancel()
            for sessions in (self._sessions, self._superseded):
                if sessions.get(pair) is session:
                    del sessions[pair]

    def _supersede(self, pair: Pair) -> None:
        """Let one older connection of ``pair`` wait until its items are taken, not any number of them."""
        if (superseded := self._sessions.get(pair)) is None:
            return
        if (before := self._superseded.get(pair)) is not None:
            before.task.cancel()
        self._superseded[pair] = superseded
        asyncio.get_running_loop().call_later(SUPERSEDED_GRACE, superseded.task.cancel)

    async def _read(self, session: ReceivingSession[BatchT, MessageT]) -> None:
        batch = self._codec.batch
        while True:
            header = await session.connection.read()
            if isinstance(header, batch):
                session.arrived(header)
            elif not isinstance(header, Alive):
                message = cast(MessageT, header)
                session.checks.check_message(message)
                self._on_message(session.pair, message)

    def _refuse(self, source: str, reason: str) -> None:
        self._refusals.add(REFUSED, source, reason)

    def _taker_ended(self, session: ReceivingSession[BatchT, MessageT], taker: "asyncio.Task[None]") -> None:
        if taker.cancelled() or (error := taker.exception()) is None:
            return
        session.connection.abort()
        if isinstance(error, FrameError):
            self._refuse(session.node, error.reason)
        else:
            self._on_failure(error)
