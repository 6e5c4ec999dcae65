"""What travels between the operators of a video query: a picture and what was found in it.

The encoded bytes are the payload of a tuple. Nothing here needs OpenCV, so whoever only counts, joins or
checks frames does not load it.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

UNKNOWN = ""
"""The person of a face that recognition was asked about and that is nobody of the gallery."""
SHOWN_UNKNOWN = "unknown"
"""What such a face is called where people look on."""

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
    the person's own (YuNet's order). ``person``: None until recognition was asked; UNKNOWN if it knows
    nobody like that. ``crop``: the aligned face as a picture file, if only crops travel."""

    box: Box
    landmarks: tuple[tuple[float, float], ...]
    score: float
    person: str | None = None
    distance: float | None = None
    crop: bytes = b""


class Frame(Struct, frozen=True, array_like=True):
    """``image``: JPEG; empty if only crops travel. ``gallery``: the version that named the faces."""

    number: Annotated[int, Meta(ge=0)]
    width: Side
    height: Side
    image: bytes
    faces: tuple[Face, ...] = ()
    gallery: str = ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode_frame(frame: Frame) -> bytes:
    return _encoder.encode(frame)


def decode_frame(payload: bytes) -> Frame:
    """Raises BadFrame."""
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise BadFrame(f"no frame: {error}") from error
