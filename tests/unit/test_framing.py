"""The wire format: what goes in comes out, and nothing else is let in."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.model.tuples import StreamTuple
from node_agent.transport.framing import (
    MAX_HEADER,
    MAX_PAYLOAD,
    PRELUDE_SIZE,
    FrameError,
    Header,
    Hello,
    Welcome,
    decode_header,
    decode_prelude,
    decode_tuple,
    encode,
    encode_tuple,
)


def decode(frame: bytes) -> tuple[Header, bytes]:
    header, payload = decode_prelude(frame[:PRELUDE_SIZE])
    assert len(frame) == PRELUDE_SIZE + header + payload
    return decode_header(frame[PRELUDE_SIZE : PRELUDE_SIZE + header]), frame[PRELUDE_SIZE + header :]


@given(st.text(max_size=50), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.binary(max_size=500))
def test_tuples_survive(origin: str, tau: int, born_ns: int, payload: bytes) -> None:
    item = StreamTuple(origin, tau, born_ns, payload)
    assert decode_tuple(*decode(encode_tuple(item))) == item


def test_greetings_survive() -> None:
    hello = Hello(1, "run", "camera/0", "detect/1")
    assert decode(encode(hello)) == (hello, b"")
    assert decode(encode(Welcome())) == (Welcome(), b"")


@given(st.binary(max_size=100))
def test_any_header_is_understood_or_refused(noise: bytes) -> None:
    with suppress(FrameError):
        decode_header(noise)


@pytest.mark.parametrize(
    "prelude",
    [b"\0\0\0\0\0\0", b"\xff\xff\0\0\0\0", b"\0\1\xff\xff\xff\xff", b"GET / "],
    ids=["no header", "large header", "large payload", "another protocol"],
)
def test_impossible_lengths_are_refused(prelude: bytes) -> None:
    with pytest.raises(FrameError):
        decode_prelude(prelude)


def test_too_much_is_not_sent_either() -> None:
    with pytest.raises(FrameError, match="payload"):
        encode_tuple(StreamTuple("camera/0", 1, 0, bytes(MAX_PAYLOAD + 1)))
    with pytest.raises(FrameError, match="header"):
        encode_tuple(StreamTuple("x" * MAX_HEADER, 1, 0, b""))


def test_only_data_frames_are_tuples() -> None:
    with pytest.raises(FrameError, match="Welcome"):
        decode_tuple(Welcome(), b"")
