"""The OLSR codec against mutated packets, and round trips of any packet that can be made."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.olsr_fuzz import CODECS, fuzz, mutated
from benchmarks.shared.olsr_captures import payloads
from node_agent.olsr.wire import (
    HELLO,
    HNA,
    LQ_HELLO,
    LQ_TC,
    MID,
    TC,
    Group,
    Hello,
    Hna,
    Malformed,
    Message,
    Mid,
    Neighbour,
    Tc,
    decode_packet,
    encode_packet,
)

bytes_ = st.integers(0, 0xFF)
shorts = st.integers(0, 0xFFFF)
addresses = st.integers(0, 0xFFFF_FFFF)
netmasks = st.integers(0, 32).map(lambda length: 0xFFFF_FFFF << (32 - length) & 0xFFFF_FFFF)


def neighbours(quality: int) -> st.SearchStrategy[tuple[Neighbour, ...]]:
    one = st.builds(Neighbour, addresses, st.binary(min_size=quality, max_size=quality))
    return st.lists(one, max_size=6).map(tuple)


def hellos(quality: int) -> st.SearchStrategy[Hello]:
    groups = st.lists(st.builds(Group, bytes_, neighbours(quality)), max_size=4).map(tuple)
    return st.builds(Hello, bytes_, bytes_, groups)


values = st.one_of(
    st.tuples(st.just(HELLO), hellos(0)),
    st.tuples(st.just(LQ_HELLO), hellos(4)),
    st.tuples(st.just(TC), st.builds(Tc, shorts, st.just(0), st.just(0), neighbours(0))),
    st.tuples(st.just(LQ_TC), st.builds(Tc, shorts, bytes_, bytes_, neighbours(4))),
    st.tuples(st.just(MID), st.builds(Mid, st.lists(addresses, max_size=6).map(tuple))),
    st.tuples(st.just(HNA), st.builds(Hna, st.lists(st.tuples(addresses, netmasks), max_size=6).map(tuple))),
)
messages = st.builds(Message, bytes_, bytes_, addresses, bytes_, bytes_, shorts, st.binary(max_size=40))


@given(values)
def test_any_body_comes_back(kind_and_value: tuple[int, object]) -> None:
    kind, value = kind_and_value
    decode, encode = CODECS[kind]
    assert decode(Message(kind, 0, 0, 0, 0, 0, encode(value))) == value


@given(shorts, st.lists(messages, min_size=1, max_size=8).map(tuple))
def test_any_packet_comes_back(seqno: int, messages: tuple[Message, ...]) -> None:
    assert decode_packet(encode_packet(seqno, messages)) == (seqno, messages)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_packet_or_malformed(data: bytes) -> None:
    try:
        seqno, messages = decode_packet(data)
    except Malformed:
        return
    assert encode_packet(seqno, messages) == data


def test_mutated_packets_are_accepted_or_malformed() -> None:
    figures = fuzz(islice(mutated(payloads("etx_ff") + payloads("rfc"), seed=1), 20_000))
    assert figures["first_crash"] == ""
    assert (figures["packets"], figures["crashes"]) == (20_000, 0)
    # Neither side of the fence may be left unvisited.
    assert int(figures["packets_accepted"]) > 1_000
    assert int(figures["bodies_accepted"]) > 1_000
    assert int(figures["bodies_refused"]) > 1_000


def test_the_same_seed_gives_the_same_mutations() -> None:
    originals = payloads("rfc")
    first, again = (list(islice(mutated(originals, seed=2), 500)) for _ in range(2))
    assert first == again
