"""What others send to a node's flows: refused and counted, never believed, and never the end of an agent."""

import asyncio
import random

import pytest

from node_agent.apps.flows import tcp_sink
from node_agent.apps.flows.events import FlowReceived, FlowSent
from node_agent.apps.flows.wire import HELLO_SIZE, WELCOME_SIZE, Chunk, FlowKey, Packet, nonce_of
from node_agent.ports import Address, ConnectionLost, PortError, Stream
from node_agent.transport.authentication import Credentials
from node_agent.transport.keys import keys_of
from tests.unit.networks import RadioNetwork
from tests.unit.node_agent.apps.flows.flow_nodes import SECRET, FlowNodes, flow, flow_nodes
from tests.unit.node_agent.apps.flows.test_flows import in_virtual_time

NODES = ("a", "b", "x")
REFUSED_DATAGRAM, REFUSED_CONNECTION = "flow datagram", "flow connection"


def key_of(source: str, sink: str, name: str = "f") -> FlowKey:
    return FlowKey(
        Credentials("run", source, keys_of(SECRET, "run", source, NODES)).to(sink, "datagram"), name
    )


def test_datagrams_of_strangers_are_refused() -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, ("a", "b"), flow(rate=8000.0, stop=5.0))
        await nodes.start()
        stranger, rng = network.port("x"), random.Random(1)
        socket = await stranger.datagrams(9, lambda data, sender: None)
        genuine = key_of("a", "b").datagram(Packet(0, 0, 0, 0), 500)
        for size in (0, 1, 7, 8, 41, 42, 500, 1472):
            socket.send(rng.randbytes(size), network.address("b"))
            socket.send(genuine[:8] + rng.randbytes(size), network.address("b"))
            socket.send(key_of("x", "b").datagram(Packet(0, size, 0, 0), 500), network.address("b"))
        await nodes.run(7)
        await nodes.stop()
        assert nodes["b"].last(FlowReceived).packets == nodes["a"].last(FlowSent).packets == 10
        assert nodes["b"].refused() == {(REFUSED_DATAGRAM, "stranger"): 16, (REFUSED_DATAGRAM, "forged"): 8}

    in_virtual_time(run)


def test_recorded_datagrams_count_as_duplicates_or_replayed() -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, ("a", "b"), flow(rate=8000.0, stop=5.0))
        await nodes.start()
        socket = await network.port("x").datagrams(9, lambda data, sender: None)
        await nodes.run(2)
        again = key_of("a", "b").datagram(Packet(0, 1, 0, 0), 500)
        for _ in range(5):
            socket.send(again, network.address("b"))
        await nodes.go_on(1)
        assert nodes["b"].last(FlowReceived).duplicates == 5
        later = key_of("a", "b").datagram(Packet(3, 0, 0, 0), 500)
        socket.send(later, network.address("b"))
        await nodes.go_on(1)
        socket.send(again, network.address("b"))
        await nodes.go_on(4)
        await nodes.stop()
        assert nodes["b"].refused()[REFUSED_DATAGRAM, "replayed"] >= 1

    in_virtual_time(run)


@pytest.mark.parametrize(
    "packet",
    [
        Packet(0, 2**32 - 1, 0, 0),
        Packet(0, 0, 2**32 - 1, 0),
        Packet(0, 0, 2**31, 2**62),
        Packet(0, 0, 0, 2**64 - 1),
        Packet(2**16 - 1, 0, 0, 0),
    ],
)
def test_a_source_that_lies_spoils_its_own_flow_only(packet: Packet) -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        other = flow(name="other", source="x", rate=8000.0, stop=5.0)
        nodes = flow_nodes(network, NODES, flow(rate=8000.0, stop=5.0), other)
        await nodes.start()
        socket = await network.port("a").datagrams(9, lambda data, sender: None)
        socket.send(key_of("a", "b").datagram(packet, 1000), network.address("b"))
        await nodes.run(7)
        await nodes.stop()
        received = {record.flow: record for record in nodes["b"].of(FlowReceived)}
        assert received["other"].packets == 10
        for record in nodes["b"].of(FlowReceived):
            assert len(record.heard) <= 4 and len(record.arrived) <= 4

    in_virtual_time(run)


async def closed(stream: Stream) -> bool:
    try:
        async with asyncio.timeout(30):
            await stream.read_exactly(10_000)
    except PortError:
        return True
    return False


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n" + bytes(40), "stranger"),
        (bytes(HELLO_SIZE), "stranger"),
        (key_of("x", "b").hello(bytes(16), 0), "stranger"),
        (key_of("a", "b").hello(bytes(16), 0)[:-1] + b"?", "forged"),
        (key_of("a", "b").hello(bytes(16), 0) + bytes(24), "forged"),
        (key_of("a", "b").hello(bytes(16), 0), "silent"),
        (b"", "silent"),
        (b"short", "silent"),
    ],
)
def test_connections_of_strangers_are_refused(said: bytes, reason: str) -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, ("a", "b"), flow(protocol="tcp", rate=8000.0, stop=5.0))
        await nodes.start()
        stream = await network.port("x").connect(network.address("b"), 5.0)
        if said:
            stream.put(said)
        await nodes.run(8)
        assert await closed(stream)
        await nodes.stop()
        assert nodes["b"].refused() == {(REFUSED_CONNECTION, reason): 1}
        assert nodes["b"].last(FlowReceived).packets == 10

    in_virtual_time(run)


def test_a_recorded_hello_does_not_displace_the_source() -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, ("a", "b"), flow(protocol="tcp", rate=8000.0, stop=20.0))
        await nodes.start()
        await nodes.run(3)
        for _ in range(50):
            stream = await network.port("x").connect(network.address("b"), 5.0)
            stream.put(key_of("a", "b").hello(bytes(16), 0))
        await nodes.go_on(20)
        await nodes.stop()
        sent = nodes["a"].last(FlowSent)
        assert (sent.connections, sent.failures, sent.acknowledged) == (1, 0, 20_000)

    in_virtual_time(run)


def test_many_silent_connections_do_not_keep_the_source_out() -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = flow_nodes(network, ("a", "b"), flow(protocol="tcp", rate=8000.0, start=1.0, stop=5.0))
        await nodes.start()
        streams = [await network.port("x").connect(network.address("b"), 5.0) for _ in range(100)]
        await nodes.run(4)
        assert nodes["a"].last(FlowSent).failures == 0
        assert len(streams) == 100
        await nodes.go_on(4)
        await nodes.stop()
        assert nodes["b"].refused()[REFUSED_CONNECTION, "crowded"] >= 80
        assert nodes["b"].last(FlowReceived).packets == 8

    in_virtual_time(run)


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (Chunk(500, 1, 0, 0), "impossible"),
        (Chunk(500, 0, 2**32 - 1, 0), "impossible"),
        (Chunk(500, 0, 0, 2**64 - 1), "impossible"),
        (Chunk(2**32 - 1, 0, 0, 0), "forged"),
        (Chunk(0, 0, 0, 0), "forged"),
    ],
)
def test_a_member_that_sends_impossible_chunks_is_refused(chunk: Chunk, reason: str) -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = FlowNodes({"b": flow_nodes(network, NODES, flow(protocol="tcp"))["b"]})
        await nodes.start()
        stream = await network.port("a").connect(network.address("b"), 5.0)
        key = key_of("a", "b")
        hello = key.hello(bytes(16), 0)
        stream.put(hello)
        session = key.session(hello, nonce_of(welcome := await stream.read_exactly(WELCOME_SIZE)))
        assert session.read_welcome(welcome) is not None
        stream.put(session.begin(0), session.chunk(chunk)[0], bytes(1000))
        assert await closed(stream)
        await nodes.stop()
        assert nodes["b"].refused() == {(REFUSED_CONNECTION, reason): 1}

    in_virtual_time(run)


@pytest.mark.parametrize("answer", ["garbage", "forged", "impossible", "nothing"])
def test_a_false_sink_gets_nothing_and_is_tried_again(answer: str) -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = FlowNodes({"a": flow_nodes(network, NODES, flow(protocol="tcp", rate=8000.0))["a"]})
        seen = 0

        async def false_sink(stream: Stream) -> None:
            nonlocal seen
            seen += 1
            hello = await stream.read_exactly(HELLO_SIZE)
            session = key_of("a", "b").session(hello, bytes(16))
            match answer:
                case "garbage":
                    stream.put(bytes(WELCOME_SIZE))
                case "forged":
                    stream.put(session.welcome(0)[:-1] + b"?")
                case "impossible":
                    stream.put(session.welcome(77))
            await stream.read_exactly(10_000)

        address = network.address("b")
        await network.port("b").listen(address.port, false_sink)
        await nodes.start()
        await nodes.run(60)
        await nodes.stop()
        sent = nodes["a"].last(FlowSent)
        assert (sent.connections, sent.acknowledged) == (0, 0)
        assert 5 <= seen <= 20 and sent.failures == seen - (answer == "nothing")
        assert sent.packets == 121

    in_virtual_time(run)


def test_a_sink_that_acknowledges_what_it_cannot_have_is_refused() -> None:
    async def run() -> None:
        network = RadioNetwork(NODES)
        nodes = FlowNodes({"a": flow_nodes(network, NODES, flow(protocol="tcp", rate=8000.0))["a"]})

        async def liar(stream: Stream) -> None:
            hello = await stream.read_exactly(HELLO_SIZE)
            session = key_of("a", "b").session(hello, bytes(16))
            stream.put(session.welcome(0))
            stream.put(session.acknowledgement(1000))
            await stream.read_exactly(100_000)

        await network.port("b").listen(network.address("b").port, liar)
        await nodes.start()
        await nodes.run(20)
        await nodes.stop()
        assert nodes["a"].last(FlowSent).acknowledged == 0
        assert nodes["a"].refused()[REFUSED_CONNECTION, "impossible"] >= 2

    in_virtual_time(run)


def test_a_source_that_reads_nothing_is_cut_off() -> None:
    """Acknowledgements to it would pile up."""

    class Deaf:
        unsent = tcp_sink.MOST_UNREAD + 1
        aborted = False
        peer = Address("a", 1)

        def abort(self) -> None:
            self.aborted = True

        def put(self, *data: bytes) -> None:
            raise ConnectionLost("not reached")

    deaf = Deaf()
    sink = tcp_sink.TcpSink(flow(protocol="tcp"), key_of("a", "b"), lambda: 0, None, lambda event: None)  # type: ignore[arg-type]
    sink._acknowledge(deaf, key_of("a", "b").session(b"", b""))  # type: ignore[arg-type]
    assert deaf.aborted
