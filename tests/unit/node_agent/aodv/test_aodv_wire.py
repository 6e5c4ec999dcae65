"""AODV's messages: the bytes of RFC 3561, there and back; what is none is rejected and nothing else."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.aodv import wire
from node_agent.aodv.wire import Acknowledgement, Broken, Error, Malformed, Message, Reply, Request

u8, u32 = st.integers(0, 255), st.integers(0, 2**32 - 1)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, u32, u8, u32, st.none() | u32, u32, u32, st.booleans(), st.booleans()),
    st.builds(Reply, u8, u32, u32, u32, u32, st.booleans()),
    st.builds(
        Error,
        st.lists(st.builds(Broken, u32, u32), min_size=1, max_size=wire.MAX_BROKEN).map(tuple),
        st.booleans(),
    ),
    st.builds(Acknowledgement),
)


@given(messages)
def test_there_and_back(message: Message) -> None:
    assert wire.decode(wire.encode(message)) == message


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (
            Request(5, 2, wire.number("10.0.0.9"), None, wire.number("10.0.0.1"), 77, gratuitous=True),
            "01 28 00 02 00000005 0a000009 00000000 0a000001 0000004d",
        ),
        (
            Request(5, 2, 1, 3, 2, 4, destination_only=True),
            "01 10 00 02 00000005 00000001 00000003 00000002 00000004",
        ),
        (Reply(3, 1, 2, 4, 3000, acknowledge=True), "02 40 00 03 00000001 00000002 00000004 00000bb8"),
        (Error((Broken(1, 2), Broken(3, 4))), "03 00 00 02 00000001 00000002 00000003 00000004"),
        (Acknowledgement(), "04 00"),
    ],
)
def test_bytes_are_those_of_the_rfc(message: Message, data: str) -> None:
    assert wire.encode(message).hex() == data.replace(" ", "")


@given(messages, st.integers(0, 3000))
def test_what_is_cut_off_is_rejected(message: Message, length: int) -> None:
    data = wire.encode(message)
    if length < len(data):
        with pytest.raises(Malformed):
            wire.decode(data[:length])


def test_mutated_messages_are_read_or_rejected() -> None:
    rng = random.Random(1)
    samples = [
        wire.encode(each)
        for each in (
            Request(1, 2, 3, 4, 5, 6),
            Reply(1, 2, 3, 4, 5),
            Error((Broken(1, 2),) * 3),
            Acknowledgement(),
        )
    ]
    for _ in range(20_000):
        data = bytearray(rng.choice(samples))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.randint(0, len(data)) :][: rng.randint(0, 3)]
        try:
            wire.encode(wire.decode(bytes(data)))
        except Malformed:
            continue


def test_addresses() -> None:
    assert wire.dotted(wire.number("10.1.2.255")) == "10.1.2.255"
    for text in ("", "10.1.2", "10.1.2.256", "a.b.c.d"):
        with pytest.raises(ValueError, match="not an IPv4 address"):
            wire.number(text)
