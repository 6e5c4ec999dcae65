"""The bytes of flows: what the source says arrives, and nothing else is believed."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.flows.model import LARGEST_DATAGRAM, SMALLEST
from node_agent.apps.flows.wire import Chunk, FlowKey, Packet, nonce_of
from node_agent.transport.authentication import Credentials
from node_agent.transport.keys import keys_of

NODES = ("a", "b", "c")
SIZES = st.integers(SMALLEST, LARGEST_DATAGRAM)
PACKETS = st.builds(
    Packet,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
)


def credentials(node: str) -> Credentials:
    return Credentials("run", node, keys_of(b"s" * 32, "run", node, NODES))


def outgoing(flow: str = "f", source: str = "a", sink: str = "b") -> FlowKey:
    return FlowKey(credentials(source).to(sink, "datagram"), flow)


def incoming(flow: str = "f", source: str = "a", sink: str = "b") -> FlowKey:
    ways = credentials(sink).incoming("datagram").values()
    return FlowKey(next(way for way in ways if way.node == source), flow)


@given(PACKETS, SIZES)
def test_packets_arrive(packet: Packet, size: int) -> None:
    datagram = outgoing().datagram(packet, size)
    assert len(datagram) == size
    assert incoming().read(datagram) == packet


@given(PACKETS, st.integers(0, SMALLEST - 1), st.integers(1, 255))
def test_a_changed_header_is_refused(packet: Packet, at: int, change: int) -> None:
    datagram = bytearray(outgoing().datagram(packet, 100))
    datagram[at] ^= change
    read = incoming().read(bytes(datagram))
    assert read is None or at < 8  # the id is looked up before


@pytest.mark.parametrize("size", [0, 1, SMALLEST - 1, 99, 101])
def test_a_cut_or_longer_datagram_is_refused(size: int) -> None:
    datagram = outgoing().datagram(Packet(1, 2, 3, 4), 100)
    assert incoming().read((datagram + bytes(10))[:size]) is None


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    assert incoming().read(noise) is None


def test_flows_have_keys_of_their_own() -> None:
    datagram = outgoing().datagram(Packet(1, 2, 3, 4), 100)
    assert incoming("g").read(datagram) is None
    assert incoming("f", "c").read(datagram) is None
    ids = {incoming(flow, source).id for flow in "fg" for source in "ac"}
    assert len(ids) == 4
    back = FlowKey(credentials("b").to("a", "datagram"), "f")
    assert back.id != outgoing().id


def test_keys_are_not_printed() -> None:
    assert repr(outgoing()) == f"FlowKey({outgoing().id.hex()})"


def test_a_greeting_and_what_follows() -> None:
    source, sink = outgoing(), incoming()
    hello = source.hello(b"n" * 16, boot=3)
    assert sink.boot_in(hello) == 3
    theirs = sink.session(hello, b"m" * 16)
    welcome = theirs.welcome(12)
    ours = source.session(hello, nonce_of(welcome))
    assert ours.read_welcome(welcome) == 12
    assert theirs.read_begin(ours.begin(12)) == 12
    header, padding = ours.chunk(Chunk(500, 12, 1, 99))
    assert theirs.read_chunk(header) == Chunk(500, 12, 1, 99)
    assert len(header) + len(padding) == 500
    assert ours.read_acknowledgement(theirs.acknowledgement(13)) == 13


def test_a_chunk_that_is_repeated_left_out_or_changed_is_refused() -> None:
    source, sink = outgoing(), incoming()
    hello = source.hello(b"n" * 16, 0)
    for tampered in ("repeated", "left out", "changed", "too large"):
        ours, theirs = source.session(hello, b"m" * 16), sink.session(hello, b"m" * 16)
        first, _ = ours.chunk(Chunk(500, 0, 0, 0))
        second, _ = ours.chunk(Chunk(500, 1, 0, 0))
        match tampered:
            case "repeated":
                assert theirs.read_chunk(first) is not None
                assert theirs.read_chunk(first) is None
            case "left out":
                assert theirs.read_chunk(second) is None
            case "changed":
                assert theirs.read_chunk(bytes([first[0] ^ 1]) + first[1:]) is None
            case "too large":
                large, _ = source.session(hello, b"m" * 16).chunk(Chunk(2**20, 0, 0, 0))
                assert theirs.read_chunk(large) is None


@given(st.binary(min_size=42, max_size=42))
def test_any_hello_is_refused_that_is_not_the_sources(noise: bytes) -> None:
    assert incoming().boot_in(noise) is None
    with suppress(ValueError):
        assert incoming().session(noise, b"m" * 16).read_begin(noise[:24]) is None


def test_a_recorded_greeting_opens_nothing() -> None:
    source, sink = outgoing(), incoming()
    hello = source.hello(b"n" * 16, 0)
    begin = source.session(hello, b"m" * 16).begin(0)
    assert sink.session(hello, b"o" * 16).read_begin(begin) is None
