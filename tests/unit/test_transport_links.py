"""Links between replicas: greeting, back-pressure, reconnecting, and peers that misbehave."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.query import OperatorSpec, Query
from node_agent.model.tuples import StreamTuple
from node_agent.ports import Address, ConnectionLost, EndOfStream, PortError, Stream, TimedOut
from node_agent.transport.framing import PROTOCOL_VERSION, Header, Hello, Welcome, encode, encode_tuple
from node_agent.transport.link import BACKOFF_FIRST, OutgoingLink, read_frame
from node_agent.transport.server import HELLO_TIMEOUT, SUPERSEDED_GRACE, LinkServer
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
HELLO = Hello(PROTOCOL_VERSION, "run", "camera/0", "detect/0")
AT = Address("down", DATA_PORT)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


def item(tau: int, size: int = 100) -> StreamTuple:
    return StreamTuple("camera/0", tau, tau, bytes(size))


class Receiver:
    """A server on node "down"; takes tuples while ``open`` is set."""

    def __init__(self, network: RadioNetwork) -> None:
        self.taken: list[int] = []
        self.failures: list[Exception] = []
        self.open = asyncio.Event()
        self.open.set()
        port = network.port("down")
        self.server = LinkServer(port, "run", "down", PLAN, self._take, self.failures.append)

    async def _take(self, hello: Hello, taken: StreamTuple) -> None:
        assert hello == HELLO
        await self.open.wait()
        if taken.origin == "poison":
            raise RuntimeError("a bug in the agent")
        self.taken.append(taken.tau)


async def raw_connection(network: RadioNetwork, *frames: bytes) -> Stream:
    stream = await network.port("up").connect(AT, 1.0)
    for frame in frames:
        await stream.write(frame)
    return stream


async def expect_closed(stream: Stream) -> None:
    with pytest.raises((EndOfStream, ConnectionLost)):
        async with asyncio.timeout(30):
            await stream.read_exactly(1)


def test_tuples_arrive_once_and_in_order() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        for tau in range(200):
            await link.send(item(tau, size=tau * 10))
        await asyncio.sleep(1)
        assert receiver.taken == list(range(200))
        await link.close()
        await link.close()
        await asyncio.sleep(1)
        await receiver.server.close()
        await receiver.server.close()
        assert not receiver.failures
        assert not receiver.server.rejected

    run(scenario())


def test_a_slow_receiver_stops_the_sender() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        receiver.open.clear()
        await receiver.server.open(AT.port)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        sent = 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                while True:
                    await link.send(item(sent, size=8192))
                    sent += 1
        assert 1 < sent < 100  # what the buffers of the two ends hold
        assert not link.connected
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (Hello(PROTOCOL_VERSION + 1, "run", "camera/0", "detect/0"), "version"),
        (Hello(PROTOCOL_VERSION, "another", "camera/0", "detect/0"), "run"),
        (Hello(PROTOCOL_VERSION, "run", "camera/0", "detect/1"), "receiver"),
        (Hello(PROTOCOL_VERSION, "run", "camera/0", "nonsense"), "receiver"),
        (Hello(PROTOCOL_VERSION, "run", "screen/0", "detect/0"), "sender"),
        (Welcome(), "frame"),
    ],
)
def test_an_unwelcome_peer_is_closed_and_counted(first: Header, reason: str) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        stream = await raw_connection(network, encode(first))
        await expect_closed(stream)
        assert receiver.server.rejected == {reason: 1}
        assert receiver.failures == []
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n", bytes(50), b"\0\5\0\0\0\0hello"])
def test_noise_closes_only_its_own_connection(noise: bytes) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        await link.send(item(1))
        await expect_closed(await raw_connection(network, noise))
        greeted = await raw_connection(network, encode(HELLO))
        assert (await read_frame(greeted))[0] == Welcome()
        await greeted.write(noise)
        await expect_closed(greeted)
        await link.send(item(2))
        await asyncio.sleep(1)
        assert receiver.taken == [1, 2]
        assert receiver.server.rejected == {"frame": 2}
        await link.close()
        await receiver.server.close()

    run(scenario())


def test_a_silent_peer_does_not_hold_a_connection() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        stream = await raw_connection(network)
        async with asyncio.timeout(HELLO_TIMEOUT + 1):
            await expect_closed(stream)
        assert receiver.server.rejected == {"timeout": 1}
        await receiver.server.close()

    run(scenario())


def test_a_connection_in_place_of_another_leaves_it_time_to_be_read_out() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        old = await raw_connection(network, encode(HELLO))
        assert (await read_frame(old))[0] == Welcome()
        new = await raw_connection(network, encode(HELLO))
        assert (await read_frame(new))[0] == Welcome()
        await old.write(encode_tuple(item(1)))
        await new.write(encode_tuple(item(2)))
        await asyncio.sleep(SUPERSEDED_GRACE / 2)
        assert sorted(receiver.taken) == [1, 2]
        await asyncio.sleep(SUPERSEDED_GRACE)
        await expect_closed(old)
        await new.write(encode_tuple(item(3)))
        await asyncio.sleep(1)
        assert receiver.taken[-1] == 3
        await receiver.server.close()

    run(scenario())


def test_an_error_of_our_own_is_reported_not_swallowed() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        receiver = Receiver(network)
        await receiver.server.open(AT.port)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        await link.send(StreamTuple("poison", 1, 1, b""))
        await asyncio.sleep(1)
        assert [str(failure) for failure in receiver.failures] == ["a bug in the agent"]
        await link.close()
        await receiver.server.close()

    run(scenario())


def test_a_peer_that_comes_back_is_found_again() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        first = Receiver(network)
        await first.server.open(AT.port)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        await link.send(item(1))
        await asyncio.sleep(1)
        await first.server.close()
        await asyncio.sleep(1)
        assert not link.connected  # noticed without sending anything
        with pytest.raises(PortError):
            await link.send(item(2))
        second = Receiver(network)
        await second.server.open(AT.port)
        await link.send(item(3))
        await asyncio.sleep(1)
        assert (first.taken, second.taken) == ([1], [3])
        await link.close()
        await second.server.close()

    run(scenario())


def test_failed_attempts_are_spaced_out() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))
        loop = asyncio.get_running_loop()
        link = OutgoingLink(network.port("up"), AT, HELLO)
        failed_at = []
        for _ in range(10):
            with pytest.raises(PortError):
                await link.send(item(1))
            failed_at.append(loop.time())
        pauses = [b - a for a, b in pairwise(failed_at)]
        assert pauses[0] >= BACKOFF_FIRST / 2
        assert 1.0 < max(pauses) <= 3.1

    run(scenario())


def test_a_peer_that_never_answers_the_hello_is_given_up() -> None:
    async def scenario() -> None:
        network = RadioNetwork(("up", "down"))

        async def silent(stream: Stream) -> None:
            await asyncio.sleep(1000)

        await network.port("down").listen(AT.port, silent)
        link = OutgoingLink(network.port("up"), AT, HELLO)
        with pytest.raises(TimedOut):
            await link.send(item(1))

    run(scenario())
