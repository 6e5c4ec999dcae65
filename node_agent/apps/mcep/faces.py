"""Faces as cameras tell them: 128 numbers each, as text. Two pictures of one person have similar numbers."""

import base64
import binascii
import math
import struct
from collections.abc import Mapping, Sequence

FACE = "face"
"""The type of atomic events: a camera sees a face."""
NUMBERS = 128
_FORM = struct.Struct(f"<{NUMBERS}f")
Features = tuple[float, ...]


def features_text(data: bytes) -> str:
    """``data``: the numbers as little-endian 32 bit floats."""
    return base64.b64encode(data).decode()


def features_of(text: object) -> Features | None:
    """None if it is no face."""
    try:
        found = _FORM.unpack(base64.b64decode(text, validate=True)) if isinstance(text, str) else ()
    except (binascii.Error, ValueError, struct.error):
        return None
    return found if found and all(map(math.isfinite, found)) else None


def nearest(face: Features, known: Mapping[str, Sequence[Features]]) -> tuple[str, float] | None:
    """Whose picture is the most similar one, and how far apart the two are; None if nobody is known."""
    apart = [(math.dist(face, each), name) for name, pictures in known.items() for each in pictures]
    if not apart:
        return None
    distance, name = min(apart)
    return name, distance
