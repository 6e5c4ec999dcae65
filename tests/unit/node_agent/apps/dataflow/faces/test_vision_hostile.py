"""Payloads of video queries that nobody could have made: counted as bad, whatever they are."""

import subprocess
import sys
from math import inf, nan

import cv2
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import node_agent.apps.dataflow  # noqa: F401 - the room that the operators belong to comes first
from node_agent.apps.dataflow.faces.frames import BadFrame, Box, Face, Frame, decode_frame, encode_frame
from node_agent.apps.dataflow.faces.heat import HeatMap, decode_heat, encode_heat, heat_of
from node_agent.apps.dataflow.faces.pixels import BadImage, decode_image, encode_png

DEEP = b"\x91" * 100_000 + b"\xc0"
FRAME = Frame(1, 640, 480, b"")


def face(*numbers: float) -> Face:
    return Face(Box(*numbers), (), 1.0)


@pytest.mark.parametrize(
    "payload",
    [
        DEEP,
        b"\x97\x01\x01\x01\xc4\x00\x90\xa0" + DEEP,
        b"\x96\x01\x01\x01\xc4\x00\x90\xa1\xff",
        encode_frame(Frame(1, 16384, 16384, b"")),
        *(encode_frame(msgspec.structs.replace(FRAME, faces=(face(n, 0, 1, 1),))) for n in (nan, inf, -inf)),
        encode_frame(msgspec.structs.replace(FRAME, faces=(Face(Box(0, 0, 1, 1), ((nan, 0.0),), 1.0),))),
    ],
)
def test_it_is_a_bad_frame(payload: bytes) -> None:
    with pytest.raises(BadFrame):
        decode_frame(payload)


@pytest.mark.parametrize(
    "heat",
    [HeatMap(10**6, 10**6, (), 1), HeatMap(0, 0, (), 1), HeatMap(1, 1, (-1,), 1), HeatMap(2, 2, (1,), 1)],
)
def test_it_is_a_bad_heat_map(heat: HeatMap) -> None:
    with pytest.raises(BadFrame):
        decode_heat(encode_heat(heat))
    with pytest.raises(BadFrame):
        decode_heat(b"\x96\xa4heat\x01\x01\x91\x00\x01" + DEEP)


def test_a_small_file_does_not_unpack_to_a_huge_picture() -> None:
    """In a process of its own: OpenCV reads its limit when it is loaded."""
    code = (
        "from node_agent.apps.dataflow.faces.pixels import BadImage, decode_image\n"
        "import cv2, numpy\n"
        "packed = cv2.imencode('.png', numpy.zeros((8200, 8200, 3), numpy.uint8))[1].tobytes()\n"
        "try: decode_image(packed)\n"
        "except BadImage: print('bad')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "bad\n", done.stderr


NUMBERS = st.floats() | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=3) | st.text(max_size=3)


@given(st.lists(st.recursive(NUMBERS, st.lists, max_leaves=20), max_size=7).map(msgspec.msgpack.encode))
def test_it_is_understood_or_bad(payload: bytes) -> None:
    for decode in (decode_frame, decode_heat):
        try:
            made = decode(payload)
        except BadFrame:
            continue
        if isinstance(made, Frame):
            heat_of(made, 4, 4)


def test_a_png_whose_chunks_claim_more_than_there_is_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = encode_png(np.zeros((48, 64, 3), np.uint8))
    assert decode_image(whole).shape == (48, 64, 3)
    at = whole.index(b"IDAT") - 4
    damaged = [
        whole[:at] + b"\x80" + whole[at + 1 :],  # a chunk of 2 GB, which OpenCV would allocate
        whole[: at + 20],
        whole[:16] + b"\x7f\xff\xff\xff" * 2 + whole[24:],
        whole[:8] + whole[at:],
        whole[:8],
    ]

    def decoded(*_: object) -> None:
        raise AssertionError("it must not come to OpenCV")

    monkeypatch.setattr(cv2, "imdecode", decoded)
    for data in damaged:
        with pytest.raises(BadImage, match="PNG"):
            decode_image(data)
