"""Strangers on the radio: they can neither join a run, nor alter what is said, nor keep its agents apart."""

import asyncio
import hmac
import random
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.agent.config import AgentConfig
from node_agent.apps.dataflow.wire.messages import (
    PROTOCOL_VERSION,
    Acknowledgement,
    Data,
    Header,
    Settled,
)
from node_agent.ports import Address, ConnectionLost, PortError, Stream
from node_agent.transport.authentication import (
    TAG_SIZE,
    Digests,
    DirectedKey,
    Seal,
    hello_seal,
    session_seals,
)
from node_agent.transport.connection import sealed
from node_agent.transport.errors import FrameError
from node_agent.transport.framing import PRELUDE_SIZE
from node_agent.transport.greeting import MAX_GREETING, hello_frame, read_hello, welcome_frame
from node_agent.transport.half_open import PER_PEER, STRANGERS
from node_agent.transport.keys import keys_of
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Hello, Welcome
from node_agent.transport.server import HELLO_TIMEOUT
from tests.unit.connection_ends import (
    AT,
    HELLO,
    KEY,
    NODES,
    NONCE,
    SECRET,
    Eavesdropped,
    Sender,
    credentials_of,
    ends,
    expect_closed,
    greeted,
    item,
    post_items,
    raw,
    run,
)
from tests.unit.networks import RadioNetwork

HEADERS = st.tuples(
    st.sampled_from(["data", "alive", "acknowledgement", "ask", "settled", "cost_report", "hello"]),
    st.recursive(
        st.integers(0, 2**64 - 1) | st.text(max_size=5) | st.binary(max_size=5), st.lists, max_leaves=10
    ),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9), st.binary(max_size=32)), max_size=2),
)


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (Hello(PROTOCOL_VERSION + 1, "camera/0", "detect/0"), "version"),
        (Hello(PROTOCOL_VERSION, "camera/0", "detect/1"), "receiver"),
        (Hello(PROTOCOL_VERSION, "camera/0", "nonsense"), "receiver"),
        (Hello(PROTOCOL_VERSION, "screen/0", "detect/0"), "sender"),
        (Hello(PROTOCOL_VERSION, "detect/0", "detect/0"), "sender"),
        (Welcome(1, 1), "frame"),
    ],
)
def test_an_unwelcome_peer_is_closed_and_counted(hello: Any, reason: str) -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        await expect_closed(await raw(network, hello_frame(KEY, hello, NONCE)))
        assert receiver.refused == {("up", reason): 1}
        assert receiver.failures == []
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize(
    "key",
    [
        credentials_of("up", secret=bytes(32)).to("down", "connection"),
        credentials_of("up", run="another").to("down", "connection"),
        credentials_of("down").to("up", "connection"),
        credentials_of("up").to("up", "connection"),
        credentials_of("up").to("down", "datagram"),
    ],
    ids=["secret", "run", "direction", "pair", "purpose"],
)
def test_a_peer_with_another_key_is_not_let_in(key: DirectedKey) -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        stranger = Sender(network.port("up"), key=key)
        with pytest.raises(PortError):
            await stranger.send(item(1))
        assert receiver.refused == {("up", "stranger"): 1}
        assert receiver.taken == []
        # Who names the right key without having it gets no further.
        pretender = Sender(network.port("up"), key=DirectedKey(key.node, KEY.id, key.secret))
        with pytest.raises(PortError):
            await pretender.send(item(1))
        assert receiver.refused == {("up", "stranger"): 1, ("up", "forged"): 1}
        assert receiver.taken == []
        await receiver.server.close()

    run(scenario())


def test_a_server_with_another_key_gets_nothing() -> None:
    async def scenario() -> None:
        network = RadioNetwork(NODES)
        got: list[bytes] = []

        async def pretend(stream: Stream) -> None:
            _, _, hello = await read_hello(stream, {KEY.id: KEY})
            other = DirectedKey("down", KEY.id, bytes(32))
            stream.put(welcome_frame(other, Welcome(1, 1), NONCE, session_seals(other, hello, NONCE)[1]))
            got.append(await stream.read_exactly(1))

        await network.port("down").listen(AT.port, pretend)
        sender = Sender(network.port("up"))
        with pytest.raises(ConnectionLost, match="does not hold the key"):
            await sender.send(item(1))
        await asyncio.sleep(1)
        assert got == []
        assert [(r.source, r.reason) for r in sender.refusals] == [("down", "forged")]

    run(scenario())


def nested(tag: str, depth: int = 990) -> bytes:
    """A greeting or a header with more fields than it should have: the last is a list in a list …"""
    deep = b"\x91" * depth + b"\xc0"
    return b"\x99" + b"".join(map(msgspec.msgpack.encode, (tag, 4, *("x",) * 6))) + deep


@pytest.mark.parametrize("tagged", [True, False])
def test_nesting_ends_neither_side(tagged: bool) -> None:
    """Neither of a stranger, whose bytes are not parsed, nor of a member of the run."""

    async def scenario() -> None:
        network, receiver, sender = await ends()
        body = nested("hello")
        head = len(body).to_bytes(2, "big") + KEY.id + NONCE
        tag = hello_seal(KEY).tag(head, body) if tagged else bytes(TAG_SIZE)
        await expect_closed(await raw(network, head + tag + body))
        connection, stream = await greeted(network)
        body = nested("alive", 5000)
        prelude = len(body).to_bytes(4, "big")
        frame_tag = connection._sending.tag(prelude, body) if tagged else bytes(TAG_SIZE)
        await stream.write(prelude + frame_tag + body)
        await expect_closed(stream)  # type: ignore[arg-type]
        await sender.send(item(1))
        await asyncio.sleep(1)
        assert receiver.failures == [] and receiver.taken == [1]
        assert sum(receiver.refused.values()) == 2
        assert tagged or receiver.refused == {("up", "forged"): 2}
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_an_answer_is_not_parsed_before_its_tag_is_checked() -> None:
    async def scenario() -> None:
        network = RadioNetwork(NODES)

        async def pretend(stream: Stream) -> None:
            await read_hello(stream, {KEY.id: KEY})
            body = nested("welcome")
            stream.put(len(body).to_bytes(2, "big") + KEY.id + NONCE + bytes(TAG_SIZE) + body)
            await stream.read_exactly(1)

        await network.port("down").listen(AT.port, pretend)
        sender = Sender(network.port("up"))
        with pytest.raises(ConnectionLost, match="does not hold the key"):
            await sender.send(item(1))
        assert sender.failures == []

    run(scenario())


def test_a_recorded_connection_cannot_be_said_again() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        connection, heard = await greeted(network)
        post_items(connection, [item(1)])
        await asyncio.sleep(1)
        assert receiver.taken == [1]
        await expect_closed(await raw(network, *heard.frames, node="stranger"))
        assert receiver.taken == [1]
        assert receiver.refused == {("up", "forged"): 1}
        await receiver.server.close()

    run(scenario())


async def tampered(network: RadioNetwork, how: str, size: int) -> None:
    connection, stream = await greeted(network)
    assert isinstance(stream, Eavesdropped)
    stream.held = True
    before = len(stream.frames)
    for tau in (1, 2):
        post_items(connection, [item(tau, size)])
    first, second = stream.frames[before:]
    damaged = bytearray(first)
    damaged[len(first) // 2] ^= 1  # of a large one, its payload
    said = {
        "replayed": first + first,
        "reordered": second + first,
        "left out": second,
        "changed": bytes(damaged),
        "untagged": first[:PRELUDE_SIZE] + bytes(TAG_SIZE) + first[PRELUDE_SIZE + TAG_SIZE :],
        "cut": first[:40] + first[41:] + second,
    }[how]
    await stream.write(said)
    await expect_closed(stream)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["replayed", "reordered", "left out", "changed", "untagged", "cut"])
@pytest.mark.parametrize("size", [100, 10_000])
def test_frames_that_were_tampered_with_end_their_connection_only(how: str, size: int) -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        await sender.send(item(10))
        await tampered(network, how, size)
        await sender.send(item(11))
        await asyncio.sleep(1)
        assert [tau for tau in receiver.taken if tau != 1] == [10, 11]
        assert receiver.taken.count(1) == (how == "replayed")
        assert receiver.refused == {("up", "forged"): 1}
        assert receiver.failures == []
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\nHost: agent\r\n\r\n", bytes(50), b"\0\0\0\5" + bytes(16) + b"hello"]
)
def test_noise_closes_only_its_own_connection(noise: bytes) -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        await sender.send(item(1))
        await expect_closed(await raw(network, noise))
        _, stream = await greeted(network)
        await stream.write(noise)
        await expect_closed(stream)  # type: ignore[arg-type]
        await sender.send(item(2))
        await asyncio.sleep(1)
        assert receiver.taken == [1, 2]
        assert sum(receiver.refused.values()) == 2
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(min_size=1, max_size=300), HEADERS.map(msgspec.msgpack.encode)))
def test_fuzzed_frames_of_a_keyed_peer_crash_nothing(noise: bytes) -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        connection, stream = await greeted(network)
        prelude = len(noise).to_bytes(4, "big")
        await stream.write(prelude + connection._sending.tag(prelude, noise) + noise)
        await asyncio.sleep(0.1)
        await sender.send(item(1))
        await asyncio.sleep(0.1)
        assert receiver.taken == [1]
        assert receiver.failures == []
        stream.abort()
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize("items", [True, False], ids=["items", "batches of nothing"])
def test_who_sends_more_than_allowed_is_cut_off(items: bool) -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends(ConnectionLimits(window_items=4))
        receiver.open.clear()
        connection, stream = await greeted(network)
        for tau in range(1, 6 if items else 1):
            post_items(connection, [item(tau)])
        if not items:
            post_items(connection, [])
        await expect_closed(stream)  # type: ignore[arg-type]
        assert receiver.refused == {("up", "frame"): 1}
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize(
    "header",
    [
        Alive(1),
        Data([item(1)]),
        Settled({"camera/0": 1}),
        Acknowledgement({"camera/0": [(2, 1)]}),
        Acknowledgement({}, {"camera/0": [(i, i) for i in range(10_000)]}),
    ],
)
def test_a_receiver_that_says_what_cannot_be_is_dropped(header: Header) -> None:
    async def scenario() -> None:
        network = RadioNetwork(NODES)

        async def odd(stream: Stream) -> None:
            _, _, hello = await read_hello(stream, {KEY.id: KEY})
            seal = session_seals(KEY, hello, NONCE)[1]
            stream.put(welcome_frame(KEY, Welcome(1, 1), NONCE, seal))
            stream.put(sealed(header, seal))
            await asyncio.sleep(100)

        await network.port("down").listen(AT.port, odd)
        sender = Sender(network.port("up"))
        await sender.connection.ready()
        await asyncio.sleep(1)
        assert sender.failures == []
        assert {each.source for each in sender.refusals} == {"down"}

    run(scenario())


@pytest.mark.parametrize("said", [b"", hello_frame(KEY, HELLO, NONCE)], ids=["nothing", "a recorded hello"])
def test_a_silent_peer_does_not_hold_a_connection(said: bytes) -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        stream = await raw(network, said)
        async with asyncio.timeout(HELLO_TIMEOUT + 1):
            await expect_closed(stream)
        assert receiver.refused == {("up", "timeout"): 1}
        await receiver.server.close()

    run(scenario())


def test_a_flood_of_half_open_connections_keeps_no_peer_out() -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        flood = [await raw(network, node="stranger") for _ in range(3 * STRANGERS)]
        own = [await raw(network) for _ in range(3 * PER_PEER)]
        await sender.send(item(1))
        await asyncio.sleep(1)
        assert receiver.taken == [1]
        left = len(receiver.server._half_open)
        assert left < STRANGERS + PER_PEER
        assert (
            sum(n for (_, reason), n in receiver.refused.items() if reason == "crowded")
            == len(flood) + len(own) + 1 - left - 1
        )
        await asyncio.sleep(HELLO_TIMEOUT)
        assert not receiver.server._half_open
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_a_member_holds_two_connections_of_a_pair_at_most() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        receiver.open.clear()
        for tau in range(1, 21):
            connection, _ = await greeted(network)
            post_items(connection, [item(tau)])
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert len(receiver.server._connections) == 2
        receiver.open.set()
        await asyncio.sleep(1)
        assert receiver.taken == [19, 20] and receiver.failures == []
        await receiver.server.close()

    run(scenario())


@given(st.binary(min_size=16, max_size=64), st.binary(max_size=4), st.binary(max_size=50))
def test_tags_are_hmac_over_number_and_frame(key: bytes, prelude: bytes, header: bytes) -> None:
    seal = Seal(key)
    tags = [seal.tag(prelude, header) for _ in range(3)]
    for number, tag in enumerate(tags):
        message = number.to_bytes(8, "big") + prelude + header
        assert tag == hmac.digest(key, message, "sha256")[:TAG_SIZE]
    assert len(set(tags)) == 3


def test_digests_are_remembered_within_bounds() -> None:
    digests = Digests(most_bytes=10_000)
    payloads = [bytes([i]) * 3000 for i in range(10)] + [bytes(20_000)]
    for _ in range(2):
        for payload in payloads:
            assert digests.of(payload) == sha256(payload).digest()
            assert sum(len(known) for known, _ in digests._known.values()) <= 10_000
    assert digests.of(payloads[3]) is digests.of(payloads[3])


def test_keys_differ_by_direction_nonce_name_and_pair() -> None:
    rng = random.Random(1)
    nonces = [rng.randbytes(16) for _ in range(3)]
    keys = [KEY, credentials_of("down").to("up", "connection"), credentials_of("up").to("up", "connection")]
    seals = [
        seal
        for key in keys
        for hello in (HELLO, Hello(PROTOCOL_VERSION, "a", "c"))
        for nonce in nonces
        for seal in session_seals(key, hello_frame(key, hello, nonces[0]), nonce)
    ]
    assert len({seal.tag(b"same", b"header") for seal in (*seals, *map(hello_seal, keys))}) == 39


def test_a_greeting_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(FrameError, match="greeting"):
        hello_frame(KEY, Hello(1, "x" * MAX_GREETING, "detect/0"), NONCE)


def test_keys_are_not_printed() -> None:
    keys = keys_of(SECRET, "run", "up", ("up", "down"))
    config = AgentConfig("run", "up", {"up": Address("up", 1)}, keys)
    for value in (config, credentials_of("up"), KEY):
        for key in (*keys.values(), KEY.secret):
            assert repr(key) not in repr(value) and key.hex() not in repr(value)


def test_silent_connections_from_its_address_do_not_displace_a_node_that_has_greeted() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        await raw(network, hello_frame(KEY, HELLO, NONCE))
        await asyncio.sleep(0.1)
        flood = [await raw(network) for _ in range(3 * PER_PEER)]
        await asyncio.sleep(0.1)
        assert receiver.server._half_open.nodes() == ["up"]
        assert receiver.refused[("up", "crowded")] == len(flood) - PER_PEER
        await receiver.server.close()

    run(scenario())
