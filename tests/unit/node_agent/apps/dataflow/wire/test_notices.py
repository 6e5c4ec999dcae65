"""Datagrams between routers: who is believed, about what, and that nothing old or impossible is."""

import asyncio
from collections.abc import Coroutine, Mapping
from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.model.routing_messages import CostReport, CostUpdate, Message, Notice
from node_agent.apps.dataflow.wire.notices import VERSION, Notices, refusal
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, Port
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.transport.authentication import ID_SIZE, TAG_SIZE, Credentials, DatagramSeal
from node_agent.transport.datagrams import EPOCH_SIZE, EPOCHS_KNOWN, MOST_BYTES, Packet, Peer
from node_agent.transport.keys import app_keys, keys_of
from tests.unit.networks import RadioNetwork

SECRET = bytes(range(32))
NODES = ("a", "b")
NODE_OF = {**{f"two/{i}": "a" for i in range(100)}, "one/0": "b"}
EPOCH = bytes(EPOCH_SIZE)
NEWS = Notice("one/0", CostUpdate("two/0", 1, 7, 1.5, 3))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario)


def notices_of(
    node: str,
    port: Port,
    addresses: Mapping[str, Address],
    heard: list[Notice] | None = None,
    refusals: Refusals | None = None,
    secret: bytes = SECRET,
    run_id: str = "run",
) -> Notices:
    """One end, as ``node``."""
    credentials = credentials_of(node, (*addresses, node), secret, run_id)
    refused = Refusals() if refusals is None else refusals
    take = (heard if heard is not None else []).append
    return Notices(port, credentials, addresses, NODE_OF, refused, take)


def credentials_of(
    node: str, nodes: tuple[str, ...] = NODES, secret: bytes = SECRET, run_id: str = "run"
) -> Credentials:
    return Credentials(run_id, node, app_keys(keys_of(secret, run_id, node, nodes), "query"))


class World:
    """Two ends on a radio that remembers what node "b" was sent, and can say it again."""

    def __init__(self) -> None:
        self.network = RadioNetwork((*NODES, "stranger"))
        self.addresses = {node: self.network.address(node) for node in NODES}
        self.heard: dict[str, list[Notice]] = {"a": [], "b": []}
        self.refusals = Refusals()
        self.recorded: list[bytes] = []
        self.ends: dict[str, Notices] = {}

    async def start(self, node: str) -> None:
        if node in self.ends:
            self.ends[node].close()
        port = self.network.port(node)
        port.fresh_bytes(len(self.ends))  # every start draws anew
        refusals = self.refusals if node == "b" else Refusals()
        end = self.ends[node] = notices_of(node, port, self.addresses, self.heard[node], refusals)
        await end.open(self.addresses[node].port)
        if node == "b":
            receive = end._datagrams._received

            def listen(data: bytes, sender: Address) -> None:
                self.recorded.append(data)
                receive(data, sender)

            socket = end._datagrams._socket
            assert socket is not None
            socket._on_datagram = listen  # type: ignore[attr-defined]

    async def say_again(self) -> None:
        socket = await self.network.port("stranger").datagrams(7000, lambda data, sender: None)
        for data in list(self.recorded):
            socket.send(data, self.addresses["b"])
        await asyncio.sleep(1)
        socket.close()

    def refused(self) -> dict[tuple[str, str], int]:
        return {(each.source, each.reason): each.count for each in self.refusals}


def test_many_notices_go_in_few_datagrams() -> None:
    async def scenario() -> None:
        world = World()
        for node in NODES:
            await world.start(node)
        sent = [Notice("one/0", CostUpdate(f"two/{i}", 1, i, 1.5, 3)) for i in range(100)]
        world.ends["a"].send("b", sent)
        await asyncio.sleep(1)
        assert world.heard["b"] == sent
        (first,) = await world.ends["a"].read()
        world.ends["a"].send("b", sent)
        await asyncio.sleep(1)
        (then,) = await world.ends["a"].read()
        assert 1 < then.sent - first.sent < 10
        assert then.sent_bytes <= then.sent * (MOST_BYTES + 28)
        for end in world.ends.values():
            end.close()
            end.close()

    run(scenario())


def test_what_was_said_to_an_earlier_start_is_not_believed() -> None:
    async def scenario() -> None:
        world = World()
        for node in NODES:
            await world.start(node)
        world.ends["a"].send("b", [NEWS])
        await asyncio.sleep(1)
        assert world.heard["b"] == [NEWS]
        world.ends["a"].close()
        await world.start("b")
        world.heard["b"].clear()
        await world.say_again()
        assert world.heard["b"] == []
        await world.start("a")  # it has lost all that it knew, even how often it has started
        world.ends["a"].send("b", [NEWS])
        await asyncio.sleep(1)
        assert world.heard["b"] == [NEWS]

    run(scenario())


def test_a_sender_that_starts_again_is_heard_and_its_past_is_not() -> None:
    async def scenario() -> None:
        world = World()
        for node in NODES:
            await world.start(node)
        huge = Notice("one/0", CostUpdate("two/0", 2**53, 2**53, 1.5, 3))
        world.ends["a"].send("b", [huge])
        await asyncio.sleep(1)
        await world.start("a")
        world.ends["a"].send("b", [NEWS])
        await asyncio.sleep(1)
        boots = [notice.message.boot for notice in world.heard["b"]]
        assert boots == [1, 2], "the receiver counts the starts: later news is newer, whatever was claimed"
        await world.say_again()
        assert [n.message.boot for n in world.heard["b"]] == [1, 2, 2]  # which its number shows to be old
        assert world.refused() == {("a", "replayed"): 1}

    run(scenario())


def test_a_flood_of_old_datagrams_is_answered_rarely() -> None:
    async def scenario() -> None:
        world = World()
        for node in NODES:
            await world.start(node)
        world.ends["a"].send("b", [NEWS])
        await asyncio.sleep(1)
        world.ends["a"].close()
        await world.start("b")
        world.recorded = world.recorded[:1] * 1000
        await world.say_again()
        (counted,) = await world.ends["b"].read()
        assert counted.sent <= 6

    run(scenario())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (CostUpdate("one/0", 1, 1, 1.0, 0), "sender"),
        (CostUpdate("nobody/0", 1, 1, 1.0, 0), "sender"),
        (CostUpdate("two/0", 1, 2**53 + 1, 1.0, 0), "impossible"),
        (CostUpdate("two/0", 1, -1, 1.0, 0), "impossible"),
        (CostUpdate("two/0", 1, 1, nan, 0), "impossible"),
        (CostUpdate("two/0", 1, 1, inf, 0), "impossible"),
        (CostUpdate("two/0", 1, 1, -1.0, 0), "impossible"),
        (CostUpdate("two/0", 1, 1, 1.0, -1), "impossible"),
        (CostUpdate("two/0", 1, 1, 1.0, 0, nan), "impossible"),
        (CostReport("two/0", 1, 1, -inf, None), "impossible"),
        (CostReport("two/0", 1, 1, None, None), None),
        (CostUpdate("two/0", 1, 1, None, 0), None),
    ],
)
def test_a_node_is_believed_about_itself_and_within_bounds(message: Message, reason: str | None) -> None:
    assert refusal([NEWS, Notice("one/0", message)], "a", NODE_OF) == reason


DEEP = b"\x95\x02\xc4\x00\xc4\x00\x90" + b"\x91" * 1000 + b"\xc0"
"""A packet with one field too many, which is a list in a list in a list …"""
PACKETS = st.binary(max_size=100) | st.tuples(
    st.just(VERSION),
    st.binary(max_size=9),
    st.binary(max_size=9),
    st.recursive(st.floats() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5), st.lists),
).map(msgspec.msgpack.encode)


@pytest.mark.parametrize("tagged", [True, False])
def test_nesting_is_refused(tagged: bool) -> None:
    assert _refused_of(DEEP, tagged) == ({("a", "frame"): 1} if tagged else {("stranger", "forged"): 1})


@given(PACKETS)
def test_whatever_a_member_says_is_understood_or_refused(data: bytes) -> None:
    _refused_of(data, True)


def _refused_of(data: bytes, tagged: bool) -> dict[tuple[str, str], int]:
    refused: dict[tuple[str, str], int] = {}

    async def scenario() -> None:
        world = World()
        await world.start("b")
        key = credentials_of("a").to("b", "datagram")
        tag = DatagramSeal(key).tag(data) if tagged else bytes(TAG_SIZE)
        assert len(key.id) == ID_SIZE
        socket = await world.network.port("stranger").datagrams(7000, lambda data, sender: None)
        socket.send(key.id + tag + data, world.addresses["b"])
        await asyncio.sleep(1)
        refused.update(world.refused())

    run(scenario())
    return refused


def test_repeating_an_old_epoch_does_not_take_the_answer_to_the_present_one() -> None:
    peer = Peer(credentials_of("a"), "b")
    assert peer.may_answer(b"old", 0.0) and not peer.may_answer(b"old", 0.1)
    assert peer.may_answer(b"present", 0.1)
    for number in range(1000):
        peer.may_answer(number.to_bytes(8, "big"), 0.1)
    assert len(peer._answered) <= EPOCHS_KNOWN


def test_a_packet_says_one_thing_of_a_replica() -> None:
    heard: list[Notice] = []

    async def scenario() -> None:
        network = RadioNetwork((*NODES, "stranger"))
        notices = notices_of("b", network.port("b"), {"a": network.address("a")}, heard)
        flips = [Notice("one/0", CostReport("two/0", 1, n, 1.0, f"one/{n % 3}")) for n in range(1, 189)]
        end = notices._datagrams
        end._believe(end._peers["a"], Packet(VERSION, EPOCH, end._epoch, flips))

    run(scenario())
    assert [notice.message.number for notice in heard] == [188]
