"""The opening side of a connection: connects, sends items and messages, and reconnects when it breaks.

Delivery is best effort. When the connection breaks, ``on_lost`` hears which items are not known to have been
taken, and why it broke. Items that were taken may be lost as well, if the other end has died.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, NoReturn

from node_agent.model.refusals import Refusals
from node_agent.ports import Address, ConnectionLost, Port, PortError, Stream, TimedOut
from node_agent.transport.authentication import NONCE_SIZE, Digests, DirectedKey
from node_agent.transport.codec import Codec, DetailsT, ItemT, MessageT
from node_agent.transport.connection import Connection, why_lost
from node_agent.transport.errors import FrameError
from node_agent.transport.greeting import hello_frame, read_welcome
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Hello, Pair
from node_agent.transport.sending import SendingSession

CONNECT_TIMEOUT = 5.0
BACKOFF_FIRST = 0.1
BACKOFF_LAST = 3.0
LASTS = 1.0
"""Seconds: a connection that lived shorter counts as a failed attempt, and the back-off goes on."""
REFUSED = "connection"
"""The name under which both sides count what they refuse."""

OnMessage = Callable[[Pair, MessageT], None]
OnLost = Callable[[Pair, Sequence[ItemT], str], None]
OnChange = Callable[[], None]
OnFailure = Callable[[BaseException], None]


def ignore_message(pair: Pair, message: object) -> None:
    pass


def ignore_loss(pair: Pair, items: Sequence[object], reason: str) -> None:
    pass


def ignore_change() -> None:
    pass


class OutgoingConnection(Generic[ItemT, DetailsT, MessageT]):
    """A connection to ``pair.receiver`` at ``to``. It is an ``ItemSender``.

    It connects when it is first used. From then on it reconnects by itself, after a back-off with jitter,
    until it is closed. ``key`` is for the receiver's node; ``digests`` is shared by the application's
    connections. ``on_message`` gets what the receiver says; ``on_silent`` is called when the receiver does
    not answer any more, ``on_back`` when it answers again; ``on_failure`` gets errors that are not the peer's
    fault. ``refusals`` counts those that are.
    """

    def __init__(
        self,
        port: Port,
        to: Address,
        key: DirectedKey,
        pair: Pair,
        codec: Codec[ItemT, DetailsT, Any, MessageT],
        limits: ConnectionLimits,
        digests: Digests,
        refusals: Refusals,
        on_failure: OnFailure,
        on_message: OnMessage[MessageT] = ignore_message,
        on_lost: OnLost[ItemT] = ignore_loss,
        on_silent: OnChange = ignore_change,
        on_back: OnChange = ignore_change,
    ) -> None:
        self._port = port
        self._to = to
        self._key = key
        self._pair = pair
        self._codec = codec
        self._limits = limits
        self._digests = digests
        self._refusals = refusals
        self._on_failure = on_failure
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_silent = on_silent
        self._on_back = on_back
        self._answers = True
        self._closed = False
        self._reconnecting: asyncio.Task[None] | None = None
        self._session: SendingSession[ItemT, DetailsT, MessageT] | None = None
        self._attempt: asyncio.Task[SendingSession[ItemT, DetailsT, MessageT]] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._hurried = asyncio.Event()

    @property
    def connected(self) -> bool:
        return self._session is not None

    @property
    def answers(self) -> bool:
        """False while the other end is silent or cannot be reached."""
        return self._answers

    async def ready(self) -> None:
        """Connect if necessary, and wait until there is room to send. Raise PortError."""
        session = self._session or await self._connected()
        await session.room()

    async def send(self, items: Sequence[ItemT], details: DetailsT | None = None) -> int:
        """Send the first of ``items`` in one frame, once there is room. Return how many, at least one.

        ``details``: what the batch says besides its items; see ``Codec.pack``. Raise PortError, or TooLarge
        if no frame can carry the first item. If the call fails or is cancelled, no item was sent.
        """
        session = self._session or await self._connected()
        await session.room()
        return session.hand_over(items, details)

    def send_message(self, message: MessageT) -> bool:
        """Send a message at once. Return False if there is no connection; ``ready`` makes one."""
        if self._session is None:
            return False
        try:
            self._session.connection.post(message)
        except ConnectionLost:
            return False
        return True

    def hurry(self) -> None:
        """Try to reach a silent receiver now, or right after the present attempt, without a back-off."""
        self._hurried.set()

    async def close(self) -> None:
        """Close in order: what was sent still arrives. May be repeated."""
        self._closed = True
        if self._session is not None:
            self._session.connection.close()
            self._session = None
        tasks = [task for task in (self._reader, self._reconnecting, self._attempt) if task is not None]
        self._reader = self._reconnecting = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _connected(self) -> SendingSession[ItemT, DetailsT, MessageT]:
        """All callers wait for the same attempt; it goes on if they give up."""
        if self._session is not None:
            return self._session
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect(), name=f"connect to {self._pair.receiver}")
            self._attempt.add_done_callback(self._attempted)
        return await asyncio.shield(self._attempt)

    def _attempted(self, attempt: "asyncio.Task[SendingSession[ItemT, DetailsT, MessageT]]") -> None:
        self._attempt = None
        if not attempt.cancelled() and isinstance(attempt.exception(), PortError):
            self._fell_silent()

    async def _connect(self) -> SendingSession[ItemT, DetailsT, MessageT]:
        await self._rest()
        self._back_off()
        stream = await self._port.connect(self._to, CONNECT_TIMEOUT)
        try:
            session = await self._greet(stream)
        except BaseException:
            stream.abort()
            raise
        was_silent, self._answers = not self._answers, True
        self._session = session
        self._reader = asyncio.create_task(self._read(session), name=f"connection to {self._pair.receiver}")
        if was_silent:
            self._on_back()
        return session

    async def _greet(self, stream: Stream) -> SendingSession[ItemT, DetailsT, MessageT]:
        receiver, codec = self._pair.receiver, self._codec
        hello = hello_frame(self._key, Hello(codec.version, *self._pair), self._port.fresh_bytes(NONCE_SIZE))
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                stream.put(hello)
                welcome, sending, receiving = await read_welcome(stream, self._key, hello)
        except TimeoutError:
            raise TimedOut(f"{receiver} did not answer the hello") from None
        except FrameError as error:
            self._refusals.add(REFUSED, self._to.host, error.reason)
            raise ConnectionLost(f"{receiver} answered the hello: {error}") from error
        stream.read_ahead()
        connection = Connection(stream, sending, receiving, codec, self._digests)
        connection.post(Alive())  # shows the receiver that the hello was not somebody's recording
        connection.watch(Alive, self._limits.dead_after)
        return SendingSession(connection, welcome, codec, self._limits, self._digests)

    async def _rest(self) -> None:
        """Wait until the next attempt is due, or somebody is in a hurry."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._retry_at):
                await self._hurried.wait()
        self._hurried.clear()

    def _back_off(self) -> None:
        """Set the earliest time of the next attempt; ``_lost`` resets it after a connection that lasted."""
        pause = min(BACKOFF_FIRST * 2**self._failures, BACKOFF_LAST) * self._port.random.uniform(0.5, 1.0)
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + pause

    async def _read(self, session: SendingSession[ItemT, DetailsT, MessageT]) -> None:
        try:
            try:
                await self._listen(session)
            except (PortError, FrameError) as error:
                if isinstance(error, FrameError):
                    self._refusals.add(REFUSED, self._key.node, error.reason)
                self._lost(session, why_lost(session.connection, error))
        except Exception as error:
            self._on_failure(error)
            self._lost(session, "broken")

    async def _listen(self, session: SendingSession[ItemT, DetailsT, MessageT]) -> NoReturn:
        batch, check_answer = self._codec.batch, self._codec.check_answer
        while True:
            header = await session.connection.read()
            if isinstance(header, Alive):
                session.taken(header.taken)
            elif isinstance(header, batch):
                raise FrameError("the receiver of a connection sent items over it")
            else:
                check_answer(header)
                self._on_message(self._pair, header)

    def _lost(self, session: SendingSession[ItemT, DetailsT, MessageT], reason: str) -> None:
        session.end()
        # A peer that lets us in and hangs up at once, again and again, must not keep us busy with it.
        if asyncio.get_running_loop().time() - session.began >= LASTS:
            self._failures = 0
            self._retry_at = 0.0
        if self._session is session:
            self._session = None
            self._on_lost(self._pair, session.allowance.under_way(), reason)
            self._fell_silent()

    def _fell_silent(self) -> None:
        if self._closed or not self._answers:
            return
        self._answers = False
        if self._reconnecting is None or self._reconnecting.done():
            name = f"reconnect to {self._pair.receiver}"
            self._reconnecting = asyncio.create_task(self._reconnect(), name=name)
        self._on_silent()

    async def _reconnect(self) -> None:
        """Nobody sends anything to a silent peer, so nobody else would find out that it is back."""
        try:
            while not self._answers:
                with suppress(PortError):
                    await self._connected()
        except Exception as error:
            self._on_failure(error)
