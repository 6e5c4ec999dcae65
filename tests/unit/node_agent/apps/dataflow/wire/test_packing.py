"""Tuples in frames: what goes in comes out, and nothing else is let in."""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.model.tuples import StreamTuple, weight_of
from node_agent.apps.dataflow.wire.codec import CODEC
from node_agent.apps.dataflow.wire.messages import (
    Acknowledgement,
    Ask,
    Data,
    DataDetails,
    Header,
    Outside,
    PassedOn,
    Settled,
)
from node_agent.apps.dataflow.wire.packing import (
    INLINE,
    MAX_PAYLOAD,
    MAX_PAYLOADS,
    attachments_of,
    pack,
    unpack,
)
from node_agent.transport.errors import FrameError
from node_agent.transport.framing import MAX_HEADER, check_attachments, decode_prelude, encode, fitting
from node_agent.transport.messages import Alive

WHOLE = st.integers(0, 2**62)
PAYLOAD = st.one_of(st.binary(max_size=50), st.integers(INLINE - 1, INLINE + 2).map(bytes))
ITEMS = st.lists(
    st.builds(
        StreamTuple,
        st.text(max_size=20),
        WHOLE,
        WHOLE,
        WHOLE,
        WHOLE,
        st.lists(PAYLOAD, max_size=3).map(tuple),
        st.booleans(),
    ),
    max_size=8,
)
FLOORS = st.dictionaries(st.text(max_size=10), WHOLE, max_size=3)
MADE = st.lists(st.tuples(WHOLE, WHOLE), max_size=3)


def decode(frame: tuple[bytes, bytes]) -> Header:
    prelude, header = frame
    assert decode_prelude(prelude) == len(header)
    return CODEC.decode(header)


def packed(*items: StreamTuple) -> tuple[Data, Sequence[bytes]]:
    return pack(items, [item.size for item in items], digest)


def digest(payload: bytes) -> bytes:
    return sha256(payload).digest()


@given(ITEMS, FLOORS, st.none() | st.builds(PassedOn, st.text(max_size=10), MADE))
def test_batches_survive(
    items: list[StreamTuple], floors: dict[str, int], passed_on: PassedOn | None
) -> None:
    packed, payloads = pack(items, [item.size for item in items], digest, DataDetails(floors, passed_on))
    data = decode(encode(packed))
    assert isinstance(data, Data)
    assert [size for size, _ in attachments_of(data)] == [len(payload) for payload in payloads]
    assert [each.digest for each in data.outside] == [digest(payload) for payload in payloads]
    assert list(unpack(data, payloads).items) == items
    assert (data.floors, data.passed_on) == (floors, passed_on)


def test_large_payloads_are_not_copied() -> None:
    large = bytes(INLINE + 1)
    data, payloads = packed(
        StreamTuple("camera/0", 1, 0, 0, 0, (b"small",)), StreamTuple("o", 2, 1, 0, 0, (large,))
    )
    assert payloads[0] is large
    assert len(encode(data)[1]) < 200
    assert unpack(data, payloads).items[1].payloads[0] is large


@pytest.mark.parametrize(
    "message",
    [
        Alive(12),
        Acknowledgement({"camera/0": [(1, 5), (7, 7)]}, {"camera/0": [(8, 9)]}),
        Ask(),
        Settled({"camera/0": 3}, [StreamTuple("camera/0", 3, 2, 9, 8, last=True)]),
    ],
)
def test_messages_survive(message: Header) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=100))
def test_any_header_is_understood_or_refused(noise: bytes) -> None:
    with suppress(FrameError):
        CODEC.decode(noise)


@given(ITEMS, st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_batch_is_understood_or_refused(items: list[StreamTuple], at: int, value: int) -> None:
    header = bytearray(encode(packed(*items)[0])[1])
    header[at % len(header)] = value
    with suppress(FrameError):
        data = CODEC.decode(bytes(header))
        if isinstance(data, Data):
            sizes = [size for size, _ in attachments_of(data)]
            check_attachments(sizes)
            assert sum(sizes) <= MAX_PAYLOAD
            for item in unpack(data, [bytes(size) for size in sizes]).items:
                assert item.tau >= 0 and item.prev >= 0 and item.size >= 0


def test_too_much_is_not_sent_either() -> None:
    with pytest.raises(FrameError, match="payloads"):
        packed(StreamTuple("camera/0", 1, 0, 0, 0, (bytes(MAX_PAYLOAD + 1),)))
    with pytest.raises(FrameError, match="header"):
        encode(packed(StreamTuple("x" * MAX_HEADER, 1, 0, 0, 0))[0])


@pytest.mark.parametrize(
    "outside",
    [
        [Outside(2, 2, b"")],
        [Outside(0, MAX_PAYLOAD + 1, b"")],
        [Outside(0, 0, b"")] * 10_000,
    ],
)
def test_payloads_that_cannot_be_are_refused(outside: list[Outside]) -> None:
    with pytest.raises(FrameError):
        data = Data([StreamTuple("camera/0", 1, 0, 0, 0)] * 2, outside)
        check_attachments([size for size, _ in attachments_of(data)])


def test_an_item_of_more_parts_than_could_be_sent_on_is_refused_where_it_comes() -> None:
    """Whoever passed it on would choke on it: one tuple of a malicious node ended an honest agent."""
    for count in (MAX_PAYLOADS, MAX_PAYLOADS + 1, 40_000):
        header = encode(Data([StreamTuple("camera/0", 1, 0, 0, 0, (b"x",) * count)]))[1]
        if count <= MAX_PAYLOADS:
            CODEC.decode(header)
        else:
            with pytest.raises(FrameError):
                CODEC.decode(header)


def test_an_item_has_its_parts_in_the_header_or_after_it() -> None:
    item = StreamTuple("camera/0", 1, 0, 0, 0, (b"x",) * MAX_PAYLOADS)
    with pytest.raises(FrameError):
        attachments_of(Data([item], [Outside(0, 1, bytes(32))]))


def test_many_small_parts_weigh_what_they_take_in_memory() -> None:
    light, heavy = (StreamTuple("camera/0", 1, 0, 0, 0, parts) for parts in ((bytes(1000),), (b"x",) * 1000))
    assert weight_of([light]) == 1000 and weight_of([heavy]) > 30 * 1000
    assert weight_of([StreamTuple("camera/0", 1, 0, 0, 0)]) == 0


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 3000)), min_size=1, max_size=20),
    st.integers(1, 600_000),
)
def test_a_frame_takes_as_many_as_fit_and_always_one(made: list[tuple[int, int]], most: int) -> None:
    items = [StreamTuple("camera/0", 1, 0, 0, 0, (bytes(size),) * count) for size, count in made]
    sizes = [item.size for item in items]
    count = fitting(sizes, most)
    assert 1 <= count <= len(items)
    assert len(encode(packed(items[0])[0])[1]) <= MAX_HEADER
    if count > 1:
        assert sum(sizes[:count]) <= most
