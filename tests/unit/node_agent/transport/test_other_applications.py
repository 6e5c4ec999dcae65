"""An application that is not a dataflow uses the transport: its own items, messages, names and datagrams."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import Struct

from node_agent.model.checked import Checked
from node_agent.model.refusals import Refusals
from node_agent.ports import Port, PortError
from node_agent.transport.authentication import Credentials, Digests
from node_agent.transport.codec import Codec
from node_agent.transport.datagrams import Datagrams
from node_agent.transport.errors import Impossible, TooLarge
from node_agent.transport.framing import MAX_HEADER
from node_agent.transport.keys import keys_of
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Pair
from node_agent.transport.outgoing import OutgoingConnection
from node_agent.transport.server import ConnectionServer
from tests.unit.connection_ends import run
from tests.unit.networks import RadioNetwork

NODES = ("broker", "client")
PAIR = Pair("client: prices", "broker: prices")
LIMITS = ConnectionLimits(window_items=8, dead_after=2.0)


class Subscribe(Struct, frozen=True, array_like=True, tag="subscribe"):
    topic: str


class Publish(Struct, frozen=True, array_like=True, tag="publish"):
    topic: str
    value: float


class Operations(Struct, frozen=True, array_like=True, tag="operations"):
    items: Sequence[Subscribe | Publish]


class Stop(Struct, frozen=True, array_like=True, tag="stop"):
    reason: str


Operation = Subscribe | Publish
Prices = Codec[Operation, None, Operations, Stop]


def refuse_long_reasons(message: Stop) -> None:
    if len(message.reason) > 10:
        raise Impossible("a long reason")


CODEC: Prices = Codec(
    version=1,
    headers=Checked(Alive | Operations | Stop, MAX_HEADER, "msgpack"),
    batch=Operations,
    items=lambda batch: batch.items,
    sizes=lambda items: [len(item.topic) for item in items],
    pack=lambda items, sizes, digest, details: (Operations(items), ()),
    check_answer=refuse_long_reasons,
)


class ClientsOnly:
    """Lets the client of a topic connect to the broker of that topic. Prices are not negative."""

    def refusal(self, pair: Pair, node: str) -> str | None:
        return None if pair.sender.startswith(f"{node}: ") else "sender"

    def expected(self, node: str) -> int:
        return 1

    def checks(self, pair: Pair) -> "ClientsOnly":
        return self

    def check_batch(self, batch: Operations) -> None:
        if any(isinstance(item, Publish) and item.value < 0 for item in batch.items):
            raise Impossible("a negative price")

    def check_message(self, message: Stop) -> None:
        refuse_long_reasons(message)


def credentials_of(node: str) -> Credentials:
    return Credentials("run", node, keys_of(bytes(32), "run", node, NODES))


class World:
    """A broker that listens and a client that connects to it."""

    def __init__(self, codec: Prices = CODEC, pair: Pair = PAIR) -> None:
        self.network = RadioNetwork(NODES)
        self.taken: list[Operation] = []
        self.said: list[tuple[str, Stop]] = []
        self.lost: list[tuple[int, str]] = []
        self.failures: list[BaseException] = []
        self.refusals = Refusals()
        self.server: ConnectionServer[Operations, Stop] = ConnectionServer(
            self.network.port("broker"),
            credentials_of("broker"),
            CODEC,
            ClientsOnly(),
            {"client": "client"},
            LIMITS,
            Digests(),
            self.refusals,
            self._take,
            self.failures.append,
            lambda pair, message: self.said.append((pair.sender, message)),
        )
        self.client: OutgoingConnection[Operation, None, Stop] = OutgoingConnection(
            self.network.port("client"),
            self.network.address("broker"),
            credentials_of("client").to("broker", "connection"),
            pair,
            codec,
            LIMITS,
            Digests(),
            self.refusals,
            self.failures.append,
            lambda pair, message: self.said.append((pair.receiver, message)),
            lambda pair, items, reason: self.lost.append((len(items), reason)),
        )

    async def _take(self, pair: Pair, batch: Operations) -> None:
        self.taken += batch.items

    async def open(self) -> "World":
        await self.server.open(self.network.address("broker").port)
        return self

    async def close(self) -> None:
        await self.client.close()
        await self.server.close()
        assert self.failures == []

    def refused(self) -> dict[tuple[str, str], int]:
        return {(each.source, each.reason): each.count for each in self.refusals}


async def send_all(client: OutgoingConnection[Operation, None, Stop], items: Sequence[Operation]) -> None:
    while items:
        items = items[await client.send(items) :]


def test_typed_items_arrive_once_and_in_order_and_messages_both_ways() -> None:
    async def scenario() -> None:
        world = await World().open()
        sent: list[Operation] = [Subscribe("prices"), *(Publish("prices", n / 2) for n in range(100))]
        await send_all(world.client, sent)
        assert world.client.send_message(Stop("done"))
        await asyncio.sleep(10)  # idle: keep-alives hold the connection
        assert world.client.connected and world.client.answers
        assert world.server.send_message(PAIR, Stop("bye"))
        await asyncio.sleep(1)
        assert world.taken == sent
        assert world.said == [("client: prices", Stop("done")), ("broker: prices", Stop("bye"))]
        assert world.refused() == {}
        await world.close()

    run(scenario())


def test_a_peer_that_disappears_is_noticed_and_its_items_are_reported() -> None:
    async def scenario() -> None:
        world = await World().open()
        await send_all(world.client, [Subscribe("prices")])
        await asyncio.sleep(1)
        world.network.move(broker=1e6)
        await send_all(world.client, [Publish("prices", 1.0)] * 3)
        await asyncio.sleep(LIMITS.dead_after)
        assert not world.client.answers
        assert world.lost == [(3, "silent")]
        await world.close()

    run(scenario())


@pytest.mark.parametrize(
    ("codec", "pair", "reason"),
    [(replace(CODEC, version=2), PAIR, "version"), (CODEC, Pair("broker: prices", "broker: x"), "sender")],
)
def test_the_version_and_the_application_decide_who_may_connect(
    codec: Prices, pair: Pair, reason: str
) -> None:
    async def scenario() -> None:
        world = await World(codec, pair).open()
        with pytest.raises(PortError):
            await world.client.ready()
        assert world.refused()["client", reason] >= 1
        await world.close()

    run(scenario())


def test_what_the_application_finds_impossible_ends_the_connection() -> None:
    async def scenario() -> None:
        world = await World().open()
        await send_all(world.client, [Publish("prices", -1.0)])
        await asyncio.sleep(1)
        assert world.taken == [] and world.refused() == {("client", "impossible"): 1}
        await world.client.ready()
        world.server.send_message(PAIR, Stop("x" * 11))
        await asyncio.sleep(0.1)
        assert world.refused() == {("client", "impossible"): 1, ("broker", "impossible"): 1}
        await world.close()

    run(scenario())


def test_an_item_that_no_frame_carries_is_refused_before_it_is_sent() -> None:
    async def scenario() -> None:
        world = await World().open()
        with pytest.raises(TooLarge):
            await world.client.send([Subscribe("x" * MAX_HEADER)])
        await send_all(world.client, [Subscribe("prices")])
        await asyncio.sleep(1)
        assert world.taken == [Subscribe("prices")]
        await world.close()

    run(scenario())


def test_datagrams_carry_any_type_and_old_starts_are_not_believed() -> None:
    async def scenario() -> None:
        network, refusals = RadioNetwork(NODES), Refusals()
        heard: list[tuple[int, Publish]] = []
        started: list[str] = []

        def end(node: str, port: Port) -> Datagrams[Publish]:
            return Datagrams(
                port,
                credentials_of(node),
                {each: network.address(each) for each in NODES},
                refusals,
                Publish,
                1,
                lambda sender, messages: "impossible" if any(m.value < 0 for m in messages) else None,
                lambda starts, messages: heard.extend((starts, message) for message in messages),
                started.append,
            )

        broker, client = (end(node, network.port(node)) for node in NODES)
        for each in (broker, client):
            await each.open(network.address("client").port)
        client.send("broker", [Publish("prices", 1.0)])  # it is not believed: no epoch is known yet
        await asyncio.sleep(1)
        assert heard == [] and started == ["broker"]
        client.send("broker", [Publish("prices", n) for n in range(100)])
        client.send("broker", [Publish("prices", -1.0)])
        await asyncio.sleep(1)
        assert started == ["broker", "client"]
        assert heard == [(1, Publish("prices", n)) for n in range(100)]
        assert [(each.source, each.reason) for each in refusals] == [("client", "impossible")]
        assert 2 < client.sent < 10
        broker.close()
        client.close()

    run(scenario())
