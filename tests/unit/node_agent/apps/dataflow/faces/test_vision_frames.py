"""Frames on their way: what is encoded comes back, and anything else is refused."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.faces.frames import (
    UNKNOWN,
    BadFrame,
    Box,
    Face,
    Frame,
    decode_frame,
    encode_frame,
)

POINTS = tuple((float(i), 2.0 * i) for i in range(5))
FACE = Face(Box(-1.5, 2, 30, 40), POINTS, 0.9, "Ada", 0.31, b"crop")
FRAME = Frame(
    7, 320, 240, b"\xff\xd8jpeg", (FACE, Face(FACE.box, (), 1.0, UNKNOWN), Face(FACE.box, (), 0.5)), "v1"
)


def test_a_frame_comes_back_as_it_was() -> None:
    assert decode_frame(encode_frame(FRAME)) == FRAME
    assert decode_frame(encode_frame(Frame(0, 1, 1, b""))) == Frame(0, 1, 1, b"")


def test_nobody_known_is_not_the_same_as_nobody_asked() -> None:
    persons = [face.person for face in decode_frame(encode_frame(FRAME)).faces]
    assert persons == ["Ada", "", None]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"not a frame",
        encode_frame(FRAME)[:-1],
        encode_frame(FRAME) + b"x",
        encode_frame(Frame(1, 0, 240, b"")),
        encode_frame(Frame(1, 320, -1, b"")),
        encode_frame(Frame(-1, 320, 240, b"")),
        encode_frame(Frame(1, 10**9, 240, b"")),
    ],
)
def test_what_is_no_frame_is_refused(payload: bytes) -> None:
    with pytest.raises(BadFrame):
        decode_frame(payload)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(payload: bytes) -> None:
    try:
        frame = decode_frame(payload)
    except BadFrame:
        return
    assert decode_frame(encode_frame(frame)) == frame


@pytest.mark.parametrize(
    "module",
    [
        "node_agent.agent.process",
        "node_agent.apps.dataflow.application",
        "node_agent.apps.dataflow.faces.queries",
        "node_agent.apps.dataflow.testing",
    ],
)
def test_agents_of_other_operators_load_neither_opencv_nor_numpy(module: str) -> None:
    program = f"import sys, {module}; sys.exit('cv2' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 0
