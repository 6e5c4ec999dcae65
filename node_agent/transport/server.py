"""The accepting side of the connections between replicas.

A connection begins with greetings that prove which node speaks, and name a replica of that node and one of
this that are neighbours in the plan; else it is closed and counted. Then it is read all the time; what waits
for the replica is bounded by the credit that its sender was given, and credit comes back as the replica takes
it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.tuples import sizes_of
from node_agent.apps.dataflow.model.units import Each
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, ConnectionLost, Listener, Port, PortError, Stream
from node_agent.transport.authentication import NONCE_SIZE, Credentials, Digests, session_seals
from node_agent.transport.claims import Claims
from node_agent.transport.connection import Connection
from node_agent.transport.credit import Grant
from node_agent.transport.framing import FrameError
from node_agent.transport.greeting import MAX_GREETING, read_hello, welcome_frame
from node_agent.transport.limits import LinkLimits
from node_agent.transport.link import REFUSED, OnFailure, OnMessage, ignore_message
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
HALF_OPEN_IN_ALL = 128

OnBatch = Callable[[Pair, Batch], Awaitable[None]]


def refusal(hello: Hello, peer: str, node: str, plan: DeploymentPlan) -> str | None:
    """Why a connection that node ``peer`` begins with ``hello`` is not welcome on ``node``; None if it is.

    Besides the replicas upstream, those of the same operator may have something to pass on, if it takes
    several items at once. A node speaks for its own replicas only.
    """
    if hello.version != PROTOCOL_VERSION:
        return "version"
    receiver = next((r for r in plan.on(node) if r.id == hello.receiver), None)
    if receiver is None:
        return "receiver"
    operators = plan.query.upstream(receiver.operator)
    if not isinstance(plan.query.operator(receiver.operator).takes, Each):
        operators = (*operators, receiver.operator)
    senders = (r.id for name in operators for r in plan.of(name) if r != receiver and r.node == peer)
    return None if hello.sender in senders else "sender"


def links_between(plan: DeploymentPlan, sender: str, receiver: str) -> int:
    """How many connections of node ``sender`` to ``receiver`` the plan has at most."""
    return sum(
        refusal(Hello(PROTOCOL_VERSION, s.id, r.id), sender, receiver, plan) is None
        for s in plan.on(sender)
        for r in plan.on(receiver)
    )


class _HalfOpen(NamedTuple):
    """``source``: the host, if it is a peer's; strangers share what little there is for them. Once its hello
    was genuine, the ``node`` that it is from: who says nothing cannot take the place of such a connection.
    """

    source: str | None
    stream: Stream
    node: str | None = None


class LinkServer:
    """``on_batch`` takes what arrives, or raises Impossible; ``on_failure`` hears of errors that are not the
    peer's doing.

    ``peers``: the hosts of the other nodes. Others share what little there is for strangers, so that they
    cannot keep the peers out. ``digests``: to be shared with the node's links.
    ``refusals`` counts the connections that were closed for what they sent or did not send.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        plan: DeploymentPlan,
        peers: Mapping[str, str],
        limits: LinkLimits,
        digests: Digests,
        refusals: Refusals,
        on_batch: OnBatch,
        on_failure: OnFailure,
        on_message: OnMessage = ignore_message,
    ) -> None:
        self._port = port
        self._node = credentials.node
        self._ways = credentials.incoming("connection")
        self._plan = plan
        self._links = {node: max(HALF_OPEN_PER_PEER, links_between(plan, node, self._node)) for node in peers}
        self._peers: dict[str, int] = {}
        for node, host in peers.items():  # nodes may share a host
            self._peers[host] = self._peers.get(host, 0) + self._links[node]
        self._limits = limits
        self._digests = digests
        self._refusals = refusals
        self._on_batch = on_batch
        self._on_failure = on_failure
        self._on_message = on_message
        self._listener: Listener | None = None
        self._connections: dict[asyncio.Task[None], None] = {}
        self._half_open: dict[asyncio.Task[None], _HalfOpen] = {}
        self._sessions: dict[Pair, _Session] = {}
        self._superseded: dict[Pair, _Session] = {}

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
        self._enter(connection, stream)
        await asyncio.wait([connection])

    def _enter(self, connection: "asyncio.Task[None]", stream: Stream) -> None:
        """The newest are the likeliest to complete: where there are too many, the oldest makes room."""
        host = stream.peer.host
        source = host if host in self._peers else None
        silent = {task: other for task, other in self._half_open.items() if other.node is None}
        same = [task for task, other in silent.items() if other.source == source]
        if len(same) >= self._peers.get(host, HALF_OPEN_STRANGERS):
            self._evict(same[0])
        elif len(silent) >= max(HALF_OPEN_IN_ALL, sum(self._peers.values())):
            self._evict(next(iter(silent)))
        self._half_open[connection] = _HalfOpen(source, stream)
        connection.add_done_callback(lambda done: self._half_open.pop(done, None))

    def _has_greeted(self, connection: "asyncio.Task[None]", node: str) -> None:
        """Its hello was genuine; somebody's recording of one may be, too, so this is bounded as well."""
        same = [task for task, other in self._half_open.items() if other.node == node]
        if len(same) >= self._links.get(node, HALF_OPEN_PER_PEER):
            self._evict(same[0])
        if (entered := self._half_open.pop(connection, None)) is not None:
            self._half_open[connection] = entered._replace(node=node)

    def _evict(self, task: "asyncio.Task[None]") -> None:
        stream = self._half_open.pop(task).stream
        task.cancel()
        stream.abort()  # a task that is cancelled before its first step runs no clean-up
        self._refuse(stream.peer.host, "crowded")

    async def _serve(self, stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        session: _Session | None = None
        try:
            session = await self._greet(stream, task)
            self._half_open.pop(task, None)
            if session is not None:
                await self._attend(session)
        except Exception as error:
            self._on_failure(error)
        finally:
            if session is None:
                stream.abort()  # nothing is owed to a stranger, not even a file descriptor for a while

    async def _greet(self, stream: Stream, task: "asyncio.Task[None]") -> "_Session | None":
        source = stream.peer.host
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                way, hello, frame = await read_hello(stream, self._ways)
                source = way.node
                self._has_greeted(task, way.node)
                reason = refusal(hello, way.node, self._node, self._plan)
                if reason is not None:
                    self._refuse(source, reason)
                    return None
                nonce = self._port.fresh_bytes(NONCE_SIZE)
                receiving, sending = session_seals(way, frame, nonce)
                window = self._limits.window_items, self._limits.window_bytes
                stream.put(welcome_frame(way, Welcome(*window), nonce, sending))
                connection = Connection(stream, sending, receiving, self._digests)
                if not isinstance(await connection.read(MAX_GREETING), Alive):
                    raise FrameError("the peer did not confirm its hello")
        except TimeoutError:
            self._refuse(source, "timeout")
        except FrameError as error:
            self._refuse(source, error.reason)
        except PortError:
            # The way to a peer may have broken. A stranger who leaves without a word is worth counting.
            if stream.peer.host not in self._peers:
                self._refuse(source, "left")
        else:
            stream.read_ahead()
            claims = Claims(self._plan, hello.pair)
            return _Session(hello.pair, way.node, connection, claims, Grant(*window), task)
        return None

    async def _attend(self, session: "_Session") -> None:
        """Read until the connection ends, and have everything taken that it brought."""
        pair, connection = session.pair, session.connection
        self._supersede(pair)
        self._sessions[pair] = session
        taker = asyncio.create_task(session.pass_on(self._on_batch), name=f"tuples of {pair.sender}")
        taker.add_done_callback(partial(self._taker_ended, session))
        connection.watch(session.alive, self._limits.dead_after)
        try:
            await self._read(session)
        except (FrameError, PortError) as error:
            # A lost connection is nobody's fault: the sender's side of the link notices and reconnects.
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
        """One connection may still wait for the replica to take what it brought, not any number of them."""
        if (superseded := self._sessions.get(pair)) is None:
            return
        if (before := self._superseded.get(pair)) is not None:
            before.task.cancel()
        self._superseded[pair] = superseded
        asyncio.get_running_loop().call_later(SUPERSEDED_GRACE, superseded.task.cancel)

    async def _read(self, session: "_Session") -> None:
        while True:
            header = await session.connection.read()
            if isinstance(header, Data):
                session.came(header)
            elif not isinstance(header, Alive):
                session.claims.check_message(header)
                self._on_message(session.pair, header)

    def _refuse(self, source: str, reason: str) -> None:
        self._refusals.add(REFUSED, source, reason)

    def _taker_ended(self, session: "_Session", taker: "asyncio.Task[None]") -> None:
        if taker.cancelled() or (error := taker.exception()) is None:
            return
        session.connection.abort()
        if isinstance(error, FrameError):
            self._refuse(session.node, error.reason)
        else:
            self._on_failure(error)


class _Session:
    """A connection from ``node``, and what it has brought that waits to be taken."""

    def __init__(
        self,
        pair: Pair,
        node: str,
        connection: Connection,
        claims: Claims,
        grant: Grant,
        task: "asyncio.Task[None]",
    ) -> None:
        self.pair = pair
        self.node = node
        self.connection = connection
        self.claims = claims
        self.task = task
        self._grant = grant
        self._inbox: deque[tuple[Batch, list[int]]] = deque()
        self._changed = asyncio.Event()
        self._finished = False

    def came(self, data: Data) -> None:
        self.claims.check_data(data)
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
