"""Both ends of a link for tests: a server that takes or does not take, links to it, and raw connections."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.query import OperatorSpec, Query
from node_agent.model.tuples import StreamTuple
from node_agent.ports import Address, ConnectionLost, EndOfStream, Port, Stream
from node_agent.transport.authentication import Credentials, Digests, Seal, hello_seal, session_seals
from node_agent.transport.connection import Connection, put_greeting, read_greeting
from node_agent.transport.limits import LinkLimits
from node_agent.transport.link import OutgoingLink
from node_agent.transport.messages import (
    PROTOCOL_VERSION,
    Alive,
    Batch,
    Greeting,
    Hello,
    Message,
    Pair,
    Welcome,
)
from node_agent.transport.server import LinkServer
from node_agent.virtual.loop import VirtualLoop
from tests.unit.networks import DATA_PORT, RadioNetwork

PLAN = DeploymentPlan(
    Query(
        "q",
        (
            OperatorSpec("camera", "synthetic_source"),
            OperatorSpec("detect", "work", ("camera",)),
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
KEY = bytes(range(32))
OURS = Credentials("run", KEY)
HELLO = Hello(PROTOCOL_VERSION, "run", *PAIR, bytes(16))
AT = Address("down", DATA_PORT)
DEFAULTS = LinkLimits()
NODES = ("up", "down", "stranger")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


def item(tau: int, size: int = 100) -> StreamTuple:
    return StreamTuple("camera/0", tau, tau - 1, tau, tau - 1, (bytes(size),))


class Receiver:
    """A server on node "down"; takes batches while ``open`` is set."""

    def __init__(self, port: Port, limits: LinkLimits = DEFAULTS, peers: Sequence[str] = NODES[:2]) -> None:
        self.taken: list[int] = []
        self.batches: list[Batch] = []
        self.messages: list[Message] = []
        self.failures: list[BaseException] = []
        self.open = asyncio.Event()
        self.open.set()
        self.server = LinkServer(
            port, OURS, "down", PLAN, peers, limits, Digests(), self._take, self.failures.append, self._hear
        )

    async def _take(self, pair: Pair, batch: Batch) -> None:
        assert pair == PAIR
        await self.open.wait()
        self.batches.append(batch)
        for each in batch.items:
            if each.origin == "poison":
                raise RuntimeError("a bug in the agent")
            self.taken.append(each.tau)

    def _hear(self, pair: Pair, message: Message) -> None:
        assert pair == PAIR
        self.messages.append(message)


class Sender:
    """A link from node "up"."""

    def __init__(
        self, port: Port, to: Address = AT, limits: LinkLimits = DEFAULTS, credentials: Credentials = OURS
    ) -> None:
        self.messages: list[Message] = []
        self.lost: list[int] = []
        self.reasons: list[str] = []
        self.failures: list[BaseException] = []
        self.silences = 0
        self.link = OutgoingLink(
            port,
            to,
            credentials,
            PAIR,
            limits,
            Digests(),
            self.failures.append,
            self._hear,
            self._lost,
            self._fell_silent,
        )

    def connected(self) -> bool:
        return self.link.connected

    async def send(self, *items: StreamTuple) -> None:
        """All of them."""
        while items:
            items = items[await self.link.send(items) :]

    def _hear(self, pair: Pair, message: Message) -> None:
        self.messages.append(message)

    def _lost(self, pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
        self.lost += [each.tau for each in items]
        self.reasons.append(reason)

    def _fell_silent(self) -> None:
        self.silences += 1


async def ends(limits: LinkLimits = DEFAULTS) -> tuple[RadioNetwork, Receiver, Sender]:
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
    network: RadioNetwork, hello: Hello = HELLO, key: bytes = KEY
) -> tuple[Connection, Eavesdropped]:
    """A connection that has been welcomed, in the hands of the test."""
    stream = Eavesdropped(await raw(network))
    put_greeting(stream, hello, hello_seal(key))  # type: ignore[arg-type]
    seals: list[Seal] = []

    def seal_of(greeting: Greeting) -> Seal:
        assert isinstance(greeting, Welcome)
        seals.extend(session_seals(key, hello, greeting.nonce))
        return seals[1]

    await read_greeting(stream, seal_of)  # type: ignore[arg-type]
    connection = Connection(stream, seals[0], seals[1], Digests())  # type: ignore[arg-type]
    connection.post(Alive())
    return connection, stream


async def expect_closed(stream: Stream) -> None:
    with pytest.raises((EndOfStream, ConnectionLost)):
        async with asyncio.timeout(30):
            while True:
                await stream.read_exactly(1)
