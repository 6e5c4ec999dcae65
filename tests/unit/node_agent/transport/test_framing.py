"""The format of a frame: lengths that are refused before memory is taken, and how much goes into a frame."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.transport.errors import FrameError
from node_agent.transport.framing import (
    MAX_ATTACHED,
    MAX_ATTACHMENTS,
    MAX_HEADER,
    check_attachments,
    decode_prelude,
    encode,
    fitting,
)


@pytest.mark.parametrize("prelude", [bytes(4), struct.pack("!I", MAX_HEADER + 1), b"GET "])
def test_impossible_lengths_are_refused(prelude: bytes) -> None:
    with pytest.raises(FrameError):
        decode_prelude(prelude)


def test_a_header_that_is_too_long_is_not_sent() -> None:
    prelude, header = encode(bytes(100))
    assert decode_prelude(prelude) == len(header)
    with pytest.raises(FrameError, match="header"):
        encode(bytes(MAX_HEADER))


def test_attachments_are_bounded() -> None:
    check_attachments([MAX_ATTACHED - MAX_ATTACHMENTS + 1, *[1] * (MAX_ATTACHMENTS - 1)])
    for sizes in ([MAX_ATTACHED + 1], [MAX_ATTACHED, 1], [0] * (MAX_ATTACHMENTS + 1)):
        with pytest.raises(FrameError, match="payloads"):
            check_attachments(sizes)


@given(st.lists(st.integers(0, 100_000), max_size=20), st.integers(1, 600_000))
def test_at_least_one_item_and_no_more_than_fit_go_into_a_frame(sizes: list[int], most: int) -> None:
    count = fitting(sizes, most)
    assert 1 <= count <= max(len(sizes), 1)
    assert count == 1 or sum(sizes[:count]) <= most
