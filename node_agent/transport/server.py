"""The accepting side of the connections between replicas.

A connection begins with greetings that prove the run's key and name two neighbouring replicas of the plan,
else it is closed and counted. Then it is read all the time; what waits for the replica is bounded by the
credit that its sender was given, and credit comes back as the replica takes it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial

from node_agent.model.plan import DeploymentPlan
from node_agent.model.tuples import sizes_of
from node_agent.ports import Address, ConnectionLost, Listener, Port, PortError, Stream
from node_agent.transport.authentication import (
    NONCE_SIZE,
    Credentials,
    Digests,
    hello_seal,
    session_seals,
)
from node_agent.transport.connection import Connection, Forged, put_greeting, read_greeting
from node_agent.transport.credit import Grant
from node_agent.transport.framing import MAX_GREETING, FrameError
from node_agent.transport.limits import LinkLimits
from node_agent.transport.link import OnFailure, OnMessage, ignore_message
from node_agent.transport.messages import (
    PROTOCOL_VERSION,
    Alive,
    Batch,
    Data,
    Hello,
    Message,
    Pair,
    PassedOn,
    Welcome,
)

HELLO_TIMEOUT = 5.0
SUPERSEDED_GRACE = 10.0
"""How long what a connection has brought may wait after its sender has opened another one in its place."""
HALF_OPEN_PER_PEER = 8
HALF_OPEN_STRANGERS = 16

OnBatch = Callable[[Pair, Batch], Awaitable[None]]


def refusal(hello: Hello, run: str, node: str, plan: DeploymentPlan) -> str | None:
    """Why a connection that begins with ``hello`` is not welcome on ``node``; None if it is.

    Besides the replicas upstream, those of the same operator may have something to pass on.
    """
    if hello.version != PROTOCOL_VERSION:
        return "version"
    if hello.run != run:
        return "run"
    receiver = next((r for r in plan.on(node) if r.id == hello.receiver), None)
    if receiver is None:
        return "receiver"
    operators = (*plan.query.upstream(receiver.operator), receiver.operator)
    senders = (r.id for name in operators for r in plan.of(name) if r != receiver)
    return None if hello.sender in senders else "sender"


class LinkServer:
    """``on_batch`` takes what arrives; ``on_failure`` hears of errors that are not the peer's doing.

    ``peers``: the hosts that connections of the run come from. Others share what little there is for
    strangers, so that they cannot keep the peers out. ``digests``: to be shared with the node's links.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        node: str,
        plan: DeploymentPlan,
        peers: Collection[str],
        limits: LinkLimits,
        digests: Digests,
        on_batch: OnBatch,
        on_failure: OnFailure,
        on_message: OnMessage = ignore_message,
    ) -> None:
        self._port = port
        self._credentials = credentials
        self._node = node
        self._plan = plan
        self._peers = frozenset(peers)
        self._limits = limits
        self._digests = digests
        self._on_batch = on_batch
        self._on_failure = on_failure
        self._on_message = on_message
        self._listener: Listener | None = None
        self._connections: dict[asyncio.Task[None], None] = {}
        self._half_open: dict[asyncio.Task[None], str | None] = {}
        self._sessions: dict[Pair, _Session] = {}
        self.rejected: Counter[str] = Counter()
        """Connections that were closed for what they sent or did not send, by reason."""

    async def open(self, port: int) -> Address:
        """Where it listens: says which port was chosen if 0 was asked for."""
        self._listener = await self._port.listen(port, self._accept)
        return self._listener.address

    def tell(self, pair: Pair, message: Message) -> bool:
        """To the sender of ``pair``; False if there is no connection to say it over."""
        session = self._sessions.get(pair)
        if session is None:
            return False
        try:
            session.connection.post(message)
        except ConnectionLost:
            return False
        return True

    def waiting(self, receiver: str) -> int:
        """Items that have come for this replica, and that it has not taken."""
        return sum(session.waiting for pair, session in self._sessions.items() if pair.receiver == receiver)

    async def close(self) -> None:
        """Accept no more, end every connection. May be repeated."""
        if self._listener is not None:
            self._listener.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)

    async def _accept(self, stream: Stream) -> None:
        # A task of our own, so that close() can end it whatever the port does with the one it made.
        connection = asyncio.create_task(self._serve(stream), name="incoming link")
        self._connections[connection] = None
        connection.add_done_callback(lambda done: self._connections.pop(done, None))
        self._enter(connection, stream.peer.host)
        await asyncio.wait([connection])

    def _enter(self, connection: "asyncio.Task[None]", host: str) -> None:
        """The newest are the likeliest to complete: where there are too many, the oldest makes room."""
        source = host if host in self._peers else None
        same = [task for task, other in self._half_open.items() if other == source]
        if len(same) >= (HALF_OPEN_STRANGERS if source is None else HALF_OPEN_PER_PEER):
            same[0].cancel()
            del self._half_open[same[0]]
            self.rejected["crowded"] += 1
        self._half_open[connection] = source
        connection.add_done_callback(lambda done: self._half_open.pop(done, None))

    async def _serve(self, stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        session: _Session | None = None
        try:
            session = await self._greet(stream, task)
            self._half_open.pop(task, None)
            if session is not None:
                await self._attend(session)
        except (FrameError, PortError) as error:
            self._count(error)
        except Exception as error:
            self._on_failure(error)
        finally:
            if session is None:
                stream.abort()  # nothing is owed to a stranger, not even a file descriptor for a while

    async def _greet(self, stream: Stream, task: "asyncio.Task[None]") -> "_Session | None":
        key = self._credentials.key
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                hello = await read_greeting(stream, lambda greeting: hello_seal(key))
                if not isinstance(hello, Hello):
                    raise FrameError("the peer did not begin with a hello")
                reason = refusal(hello, self._credentials.run, self._node, self._plan)
                if reason is not None:
                    self.rejected[reason] += 1
                    return None
                nonce = self._port.fresh_bytes(NONCE_SIZE)
                receiving, sending = session_seals(key, hello, nonce)
                window = self._limits.window_items, self._limits.window_bytes
                put_greeting(stream, Welcome(nonce, *window), sending)
                connection = Connection(stream, sending, receiving, self._digests)
                if not isinstance(await connection.read(MAX_GREETING), Alive):
                    raise FrameError("the peer did not confirm its hello")
        except TimeoutError:
            self.rejected["timeout"] += 1
            return None
        return _Session(hello.pair, connection, Grant(*window), task)

    async def _attend(self, session: "_Session") -> None:
        """Read until the connection ends, and have everything taken that it brought."""
        pair, connection = session.pair, session.connection
        if (superseded := self._sessions.get(pair)) is not None:
            asyncio.get_running_loop().call_later(SUPERSEDED_GRACE, superseded.task.cancel)
        self._sessions[pair] = session
        taker = asyncio.create_task(session.pass_on(self._on_batch), name=f"tuples of {pair.sender}")
        taker.add_done_callback(partial(self._taker_ended, connection))
        connection.watch(session.alive, self._limits.dead_after)
        try:
            await self._read(session)
        except (FrameError, PortError) as error:
            self._count(error)
            connection.close()
            session.finish()
            await asyncio.wait([taker])
        finally:
            connection.close()
            taker.cancel()
            if self._sessions.get(pair) is session:
                del self._sessions[pair]

    async def _read(self, session: "_Session") -> None:
        while True:
            header = await session.connection.read()
            if isinstance(header, Data):
                session.came(header)
            elif not isinstance(header, Alive):
                self._on_message(session.pair, header)

    def _count(self, error: FrameError | PortError) -> None:
        """A lost connection is nobody's fault: the sender's side of the link notices and reconnects."""
        if isinstance(error, FrameError):
            self.rejected["forged" if isinstance(error, Forged) else "frame"] += 1

    def _taker_ended(self, connection: Connection, taker: "asyncio.Task[None]") -> None:
        if not taker.cancelled() and (error := taker.exception()) is not None:
            connection.abort()
            self._on_failure(error)


class _Session:
    """A connection, and what it has brought that waits to be taken."""

    def __init__(self, pair: Pair, connection: Connection, grant: Grant, task: "asyncio.Task[None]") -> None:
        self.pair = pair
        self.connection = connection
        self.task = task
        self._grant = grant
        self._inbox: deque[tuple[Batch, list[int]]] = deque()
        self._changed = asyncio.Event()
        self._finished = False

    def came(self, data: Data) -> None:
        sizes = sizes_of(data.items)
        self._grant.came(sizes)
        sender, made = data.passed_on or PassedOn(self.pair.sender)
        self._inbox.append((Batch(sender, data.items, data.floors, made), sizes))
        self._changed.set()

    @property
    def waiting(self) -> int:
        return self._grant.waiting

    def finish(self) -> None:
        """Nothing more will come."""
        self._finished = True
        self._changed.set()

    async def pass_on(self, on_batch: OnBatch) -> None:
        """Return when all has been taken and nothing more will come."""
        while self._inbox or not self._finished:
            if not self._inbox:
                self._changed.clear()
                await self._changed.wait()
                continue
            batch, sizes = self._inbox[0]
            await on_batch(self.pair, batch)
            self._inbox.popleft()
            if self._grant.took(sizes):
                with suppress(ConnectionLost):
                    self.connection.post(self.alive())

    def alive(self) -> Alive:
        self._grant.told()
        return Alive(self._grant.taken)
