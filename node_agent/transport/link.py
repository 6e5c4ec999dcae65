"""The sending side of the connection between two replicas.

A link is best effort: what was handed over may still be lost when the connection breaks, and ``on_lost`` then
says what is not known to have been taken, and why it broke; what was taken may be lost as well, if the other
end has died. It connects when something is to be sent, not before a jittered back-off has passed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn, Protocol

from node_agent.apps.dataflow.model.tuples import StreamTuple, sizes_of
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, ConnectionLost, Port, PortError, Stream, TimedOut
from node_agent.transport.authentication import NONCE_SIZE, Digests, Way
from node_agent.transport.claims import check_answer
from node_agent.transport.connection import Connection, why_lost
from node_agent.transport.credit import Allowance
from node_agent.transport.framing import FrameError, TooLarge, fitting
from node_agent.transport.greeting import hello_frame, read_welcome
from node_agent.transport.limits import LinkLimits
from node_agent.transport.messages import (
    PROTOCOL_VERSION,
    Alive,
    Data,
    Hello,
    Message,
    Pair,
    PassedOn,
)

CONNECT_TIMEOUT = 5.0
BACKOFF_FIRST = 0.1
BACKOFF_LAST = 3.0
LASTS = 1.0
"""Seconds: after a connection that lived shorter the back-off goes on, as if it had failed."""
MOST_ITEMS, MOST_BYTES = 65_536, 64 * 1024 * 1024
"""What a link has under way at most, however much the receiver allows: all of it is remembered here."""
REFUSED = "connection"
"""Under which name both sides count what they refuse."""

OnMessage = Callable[[Pair, Message], None]
OnLost = Callable[[Pair, Sequence[StreamTuple], str], None]
OnSilent = Callable[[], None]
OnFailure = Callable[[BaseException], None]


def ignore_message(pair: Pair, message: Message) -> None:
    pass


def ignore_loss(pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
    pass


def ignore_silence() -> None:
    pass


class Link(Protocol):
    """A way to one downstream replica."""

    @property
    def answers(self) -> bool:
        """False from when the other end was last heard, or sought in vain, until it is heard again."""
        ...

    async def ready(self) -> None:
        """Return once there is room: what gathers until then can be sent in one go. Raises PortError."""
        ...

    async def send(self, items: Sequence[StreamTuple]) -> int:
        """Hand over the first of ``items``, at least one, once there is room for it; raises PortError, and
        TooLarge if no frame carries the first.

        Says how many. If it fails or is cancelled, none was handed over.
        """
        ...

    async def close(self) -> None: ...


class OutgoingLink:
    """Once it has been used, it mends itself: it goes on seeking the other end until there is a connection.

    ``way`` leads to the receiver's node. ``on_message`` hears what the receiver says, ``on_silent`` that it
    does not answer any more, and ``on_failure`` of errors that are not the peer's doing; those that are, are
    counted in ``refusals``.
    """

    def __init__(
        self,
        port: Port,
        to: Address,
        way: Way,
        pair: Pair,
        limits: LinkLimits,
        digests: Digests,
        refusals: Refusals,
        on_failure: OnFailure,
        on_message: OnMessage = ignore_message,
        on_lost: OnLost = ignore_loss,
        on_silent: OnSilent = ignore_silence,
    ) -> None:
        self._port = port
        self._to = to
        self._way = way
        self._pair = pair
        self._limits = limits
        self._digests = digests
        self._refusals = refusals
        self._on_failure = on_failure
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_silent = on_silent
        self._answers = True
        self._closed = False
        self._mending: asyncio.Task[None] | None = None
        self._session: _Session | None = None
        self._attempt: asyncio.Task[_Session] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._failures = 0
        self._retry_at = 0.0

    @property
    def connected(self) -> bool:
        return self._session is not None

    @property
    def answers(self) -> bool:
        return self._answers

    async def ready(self) -> None:
        session = self._session or await self._connected()
        await session.room()

    async def send(
        self,
        items: Sequence[StreamTuple],
        floors: Mapping[str, int] = {},
        passed_on: PassedOn | None = None,
    ) -> int:
        session = self._session or await self._connected()
        await session.room()
        return session.hand_over(items, floors, passed_on)

    def tell(self, message: Message) -> bool:
        """False if there is no connection to say it over; ``ready`` makes one."""
        if self._session is None:
            return False
        try:
            self._session.connection.post(message)
        except ConnectionLost:
            return False
        return True

    async def close(self) -> None:
        """Close in order, so that what was handed over still arrives. May be repeated."""
        self._closed = True
        if self._session is not None:
            self._session.connection.close()
            self._session = None
        tasks = [task for task in (self._reader, self._mending, self._attempt) if task is not None]
        self._reader = self._mending = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _connected(self) -> "_Session":
        """All who ask wait for the same attempt, which goes on if they give up."""
        if self._session is not None:
            return self._session
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect(), name=f"connect to {self._pair.receiver}")
            self._attempt.add_done_callback(self._attempted)
        return await asyncio.shield(self._attempt)

    def _attempted(self, attempt: "asyncio.Task[_Session]") -> None:
        self._attempt = None
        if not attempt.cancelled() and isinstance(attempt.exception(), PortError):
            self._fell_silent()

    async def _connect(self) -> "_Session":
        await self._port.sleep(max(0.0, self._retry_at - asyncio.get_running_loop().time()))
        self._back_off()
        stream = await self._port.connect(self._to, CONNECT_TIMEOUT)
        try:
            session = await self._greet(stream)
        except BaseException:
            stream.abort()
            raise
        self._answers = True
        self._session = session
        self._reader = asyncio.create_task(self._read(session), name=f"link to {self._pair.receiver}")
        return session

    async def _greet(self, stream: Stream) -> "_Session":
        receiver = self._pair.receiver
        hello = hello_frame(
            self._way, Hello(PROTOCOL_VERSION, *self._pair), self._port.fresh_bytes(NONCE_SIZE)
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                stream.put(hello)
                welcome, sending, receiving = await read_welcome(stream, self._way, hello)
        except TimeoutError:
            raise TimedOut(f"{receiver} did not answer the hello") from None
        except FrameError as error:
            self._refusals.add(REFUSED, self._to.host, error.reason)
            raise ConnectionLost(f"{receiver} answered the hello: {error}") from error
        stream.read_ahead()
        connection = Connection(stream, sending, receiving, self._digests)
        connection.post(Alive())  # shows the receiver that the hello was not somebody's recording
        connection.watch(Alive, self._limits.dead_after)
        items, size = min(welcome.items, MOST_ITEMS), min(welcome.bytes, MOST_BYTES)
        return _Session(connection, Allowance(items, size), items, self._limits)

    def _back_off(self) -> None:
        """Set the earliest time of the next attempt; undone if this one makes a connection that lasts."""
        pause = min(BACKOFF_FIRST * 2**self._failures, BACKOFF_LAST) * self._port.random.uniform(0.5, 1.0)
        self._failures += 1
        self._retry_at = asyncio.get_running_loop().time() + pause

    async def _read(self, session: "_Session") -> None:
        try:
            try:
                await self._listen(session)
            except (PortError, FrameError) as error:
                if isinstance(error, FrameError):
                    self._refusals.add(REFUSED, self._way.node, error.reason)
                self._lost(session, why_lost(session.connection, error))
        except Exception as error:
            self._on_failure(error)
            self._lost(session, "broken")

    async def _listen(self, session: "_Session") -> NoReturn:
        while True:
            header = await session.connection.read()
            if isinstance(header, Alive):
                session.taken(header.taken)
            elif isinstance(header, Data):
                raise FrameError("the receiver of a link sent data over it")
            else:
                check_answer(header)
                self._on_message(self._pair, header)

    def _lost(self, session: "_Session", reason: str) -> None:
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
        if self._mending is None or self._mending.done():
            self._mending = asyncio.create_task(self._mend(), name=f"mending of {self._pair.receiver}")
        self._on_silent()

    async def _mend(self) -> None:
        """Whoever is silent is not sent anything, so nobody but us would find out that it is back."""
        try:
            while not self._answers:
                with suppress(PortError):
                    await self._connected()
        except Exception as error:
            self._on_failure(error)


class _Session:
    """A connection, and how much may still be sent over it."""

    def __init__(self, connection: Connection, allowance: Allowance, window: int, limits: LinkLimits) -> None:
        self.connection = connection
        self.allowance = allowance
        # While one batch is being taken, others should be on their way.
        self._most = max(1, min(limits.batch_items, window // 4))
        self._most_bytes = limits.batch_bytes
        self.began = asyncio.get_running_loop().time()
        self._changed = asyncio.Event()
        self._over = False

    async def room(self) -> None:
        while True:
            await self.connection.drained()
            if self.allowance.left > 0:
                return
            self._changed.clear()
            await self._changed.wait()
            if self._over:
                raise ConnectionLost("the link broke while it waited for the receiver")

    def hand_over(
        self, items: Sequence[StreamTuple], floors: Mapping[str, int], passed_on: PassedOn | None
    ) -> int:
        most = min(self._most, self.allowance.left)
        batch = items[:most]
        sizes = sizes_of(batch)
        count = fitting(sizes, min(self._most_bytes, self.allowance.bytes_left))
        while True:
            batch, sizes = batch[:count], sizes[:count]
            try:
                self.connection.post_items(batch, sizes, floors, passed_on)
            except FrameError as error:  # of very many payloads each
                if count == 1:
                    raise TooLarge(str(error)) from error
                count //= 2
                continue
            self.allowance.sent(batch, sizes)
            return count

    def taken(self, count: int) -> None:
        self.allowance.taken(count)
        self._changed.set()

    def end(self) -> None:
        self._over = True
        self.connection.abort()
        self._changed.set()


class LocalLink:
    """To a replica on the same node: a call instead of a connection."""

    def __init__(self, deliver: Callable[[Sequence[StreamTuple]], Awaitable[int]]) -> None:
        self._deliver = deliver

    answers = True

    async def ready(self) -> None:
        pass

    async def send(self, items: Sequence[StreamTuple]) -> int:
        return await self._deliver(items)

    async def close(self) -> None:
        pass
