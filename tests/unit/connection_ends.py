"""Both ends of a connection for tests: a server that takes items or not, connections to it, and raw streams.

They speak the dataflow's messages, as the first application of the transport.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from hashlib import sha256
from typing import Any

import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.tuples import StreamTuple, sizes_of
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.apps.dataflow.wire.admission import PlanAdmission
from node_agent.apps.dataflow.wire.codec import CODEC, TupleConnection, TupleServer
from node_agent.apps.dataflow.wire.messages import PROTOCOL_VERSION, Batch, Data, Message, batch_of
from node_agent.apps.dataflow.wire.packing import pack
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, ConnectionLost, EndOfStream, Port, Stream
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.transport.authentication import Credentials, Digests, DirectedKey
from node_agent.transport.connection import Connection
from node_agent.transport.greeting import hello_frame, read_welcome
from node_agent.transport.keys import keys_of
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Hello, Pair
from node_agent.transport.server import ConnectionServer
from tests.unit.networks import DATA_PORT, RadioNetwork

PLAN = DeploymentPlan(
    Query(
        "q",
        (
            OperatorSpec("camera", "synthetic_source"),
            OperatorSpec("detect", "work", ("camera",), {}, CountWindow(2, 2)),
            OperatorSpec("screen", "sink", ("detect",)),
        ),
    ),
    (
        Replica("camera", 0, "up"),
        Replica("detect", 0, "down"),
        Replica("detect", 1, "up"),
        Replica("screen", 0, "up"),
    ),
)
PAIR = Pair("camera/0", "detect/0")
SECRET = bytes(range(32))
HELLO = Hello(PROTOCOL_VERSION, *PAIR)
NONCE = bytes(16)
POISON = 666
"""The position of an item that the receiver cannot take."""
AT = Address("down", DATA_PORT)
DEFAULTS = ConnectionLimits()
NODES = ("up", "down", "stranger")
MEMBERS = NODES[:2]


def credentials_of(node: str, run: str = "run", secret: bytes = SECRET) -> Credentials:
    return Credentials(run, node, keys_of(secret, run, node, MEMBERS))


KEY = credentials_of("up").to("down", "connection")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


def item(tau: int, size: int = 100) -> StreamTuple:
    return StreamTuple("camera/0", tau, tau - 1, tau, tau - 1, (bytes(size),))


class Receiver:
    """A server on node "down"; takes batches while ``open`` is set."""

    def __init__(
        self, port: Port, limits: ConnectionLimits = DEFAULTS, peers: Sequence[str] = MEMBERS
    ) -> None:
        self.taken: list[int] = []
        self.batches: list[Batch] = []
        self.messages: list[Message] = []
        self.failures: list[BaseException] = []
        self.refusals = Refusals()
        self.open = asyncio.Event()
        self.open.set()
        self.server: TupleServer = ConnectionServer(
            port,
            credentials_of("down"),
            CODEC,
            PlanAdmission(PLAN, "down"),
            dict(zip(MEMBERS, peers, strict=False)),
            limits,
            Digests(),
            self.refusals,
            self._take,
            self.failures.append,
            self._hear,
        )

    @property
    def refused(self) -> dict[tuple[str, str], int]:
        """By source and reason."""
        return {(each.source, each.reason): each.count for each in self.refusals}

    async def _take(self, pair: Pair, data: Data) -> None:
        assert pair.receiver == PAIR.receiver
        await self.open.wait()
        self.batches.append(batch_of(pair, data))
        for each in data.items:
            if each.tau == POISON:
                raise RuntimeError("a bug in the agent")
            self.taken.append(each.tau)

    def _hear(self, pair: Pair, message: Message) -> None:
        assert pair == PAIR
        self.messages.append(message)


class Sender:
    """A connection from node "up"."""

    def __init__(
        self,
        port: Port,
        to: Address = AT,
        limits: ConnectionLimits = DEFAULTS,
        key: DirectedKey = KEY,
        pair: Pair = PAIR,
    ) -> None:
        self.messages: list[Message] = []
        self.lost: list[int] = []
        self.reasons: list[str] = []
        self.failures: list[BaseException] = []
        self.refusals = Refusals()
        self.silences = 0
        self.connection = TupleConnection(
            port,
            to,
            key,
            pair,
            CODEC,
            limits,
            Digests(),
            self.refusals,
            self.failures.append,
            self._hear,
            self._lost,
            self._fell_silent,
        )

    def connected(self) -> bool:
        return self.connection.connected

    async def send(self, *items: StreamTuple) -> None:
        """All of them."""
        while items:
            items = items[await self.connection.send(items) :]

    def _hear(self, pair: Pair, message: Message) -> None:
        self.messages.append(message)

    def _lost(self, pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
        self.lost += [each.tau for each in items]
        self.reasons.append(reason)

    def _fell_silent(self) -> None:
        self.silences += 1


async def ends(limits: ConnectionLimits = DEFAULTS) -> tuple[RadioNetwork, Receiver, Sender]:
    network = RadioNetwork(NODES)
    receiver = Receiver(network.port("down"), limits)
    await receiver.server.open(AT.port)
    return network, receiver, Sender(network.port("up"), limits=limits)


async def raw(network: RadioNetwork, *data: bytes, node: str = "up") -> Stream:
    stream = await network.port(node).connect(AT, 1.0)
    for each in data:
        await stream.write(each)
    return stream


class Eavesdropped:
    """A stream that remembers what was put into it, and may hold it back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.frames: list[bytes] = []
        self.held = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def put(self, *data: bytes) -> None:
        self.frames.append(b"".join(data))
        if not self.held:
            self._stream.put(*data)


async def greeted(
    network: RadioNetwork, hello: Hello = HELLO, key: DirectedKey = KEY
) -> tuple[Connection[Data, Message], Eavesdropped]:
    """A connection that has been welcomed, in the hands of the test."""
    stream = Eavesdropped(await raw(network))
    frame = hello_frame(key, hello, NONCE)
    stream.put(frame)
    _, sending, receiving = await read_welcome(stream, key, frame)  # type: ignore[arg-type]
    connection = Connection(stream, sending, receiving, CODEC, Digests())  # type: ignore[arg-type]
    connection.post(Alive())
    return connection, stream


def post_items(connection: Connection[Data, Message], items: Sequence[StreamTuple]) -> None:
    connection.post_batch(*pack(items, sizes_of(items), lambda payload: sha256(payload).digest()))


async def expect_closed(stream: Stream) -> None:
    with pytest.raises((EndOfStream, ConnectionLost)):
        async with asyncio.timeout(30):
            while True:
                await stream.read_exactly(1)
