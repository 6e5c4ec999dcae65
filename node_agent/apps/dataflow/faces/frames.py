"""The payload of a video query's tuples: a picture and what was found in it.

Nothing here needs OpenCV, so code that only counts, joins or checks frames does not load it.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.dataflow.wire.packing import MAX_PAYLOAD
from node_agent.model.checked import Checked, Count, Refused

UNKNOWN = ""
"""The person of a face that recognition did not find in the gallery."""
SHOWN_UNKNOWN = "unknown"
"""How such a face is named on a screen."""

MAX_PIXELS = 64 << 20
"""The largest picture: no honest sender needs more memory than that."""

Side = Annotated[int, Meta(ge=1, le=16384)]


class BadFrame(ValueError):
    """These bytes are no frame."""


class Box(Struct, frozen=True, array_like=True):
    """In pixels, from the picture's upper left corner. Faces at a border may reach over it."""

    x: float
    y: float
    width: float
    height: float


class Face(Struct, frozen=True, array_like=True):
    """``landmarks``: right eye, left eye, tip of the nose, right and left corner of the mouth, where right is
    the person's own (YuNet's order). ``person``: None before recognition; UNKNOWN if the gallery has nobody
    similar. ``crop``: the aligned face as a picture file, if only crops are sent.
    """

    box: Box
    landmarks: tuple[tuple[float, float], ...]
    score: float
    person: str | None = None
    distance: float | None = None
    crop: bytes = b""


class Frame(Struct, frozen=True, array_like=True):
    """``image``: JPEG; empty if only crops are sent. ``gallery``: the version that named the faces."""

    number: Count
    width: Side
    height: Side
    image: bytes
    faces: tuple[Face, ...] = ()
    gallery: str = ""


_encoder = msgspec.msgpack.Encoder()
_frames: Checked[Frame] = Checked(Frame, MAX_PAYLOAD, "msgpack")


def encode_frame(frame: Frame) -> bytes:
    return _encoder.encode(frame)


def decode_frame(payload: bytes) -> Frame:
    """Raises BadFrame."""
    try:
        frame = _frames.decode(payload)
    except Refused as error:
        raise BadFrame(f"no frame: {error}") from error
    if frame.width * frame.height > MAX_PIXELS:
        raise BadFrame(f"a frame of {frame.width} × {frame.height} pixels")
    if not all(map(isfinite, _numbers(frame))):
        raise BadFrame("a face that is nowhere")
    return frame


def _numbers(frame: Frame) -> Iterator[float]:
    for face in frame.faces:
        yield from (face.box.x, face.box.y, face.box.width, face.box.height, face.score, face.distance or 0.0)
        for point in face.landmarks:
            yield from point
