"""Reads trained layers from a file of dlib.

It reads only what the face network needs of dlib's format: packed integers, and tensors of 32-bit floats that
follow the name of their layer. Layers are in the order from the network's input to its output.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# A name's length stands before it as a packed integer: one byte of size, one of value.
LAYER = re.compile(rb"\x01\x05(con)_4|\x01\x07(affine)_|\x01\x04(fc)_2")
TENSOR_VERSION = 2


class BadWeights(Exception):
    """The file does not hold the layers of the network."""


class Layer(NamedTuple):
    kind: str  # con, affine, fc
    values: Floats  # flat


def read_layers(content: bytes) -> list[Layer]:
    """Returns all layers with trained values. Raises BadWeights if one is cut off or not understood."""
    layers: list[Layer] = []
    end = 0
    while match := LAYER.search(content, end):
        kind, end = next(name for name in match.groups() if name).decode(), match.end()
        if kind == "fc":  # says its own size before the tensor says it
            for _ in range(2):
                _, end = _integer(content, end)
        values, end = _tensor(content, end)
        layers.append(Layer(kind, values))
    return layers


def _tensor(content: bytes, at: int) -> tuple[Floats, int]:
    version, at = _integer(content, at)
    if version != TENSOR_VERSION:
        raise BadWeights(f"tensor of version {version} at byte {at}: only version {TENSOR_VERSION} is known")
    count = 1
    for _ in range(4):
        extent, at = _integer(content, at)
        count *= extent
    end = at + 4 * count
    if end > len(content):
        raise BadWeights(f"the file ends within a tensor of {count} values at byte {at}")
    return np.frombuffer(content, "<f4", count, at), end


def _integer(content: bytes, at: int) -> tuple[int, int]:
    """Reads an integer: a byte with the number of value bytes that follow, lowest first."""
    size = content[at] if at < len(content) else 0
    if not 1 <= size <= 8 or at + 1 + size > len(content):
        raise BadWeights(f"no integer at byte {at}")
    return int.from_bytes(content[at + 1 : at + 1 + size], "little"), at + 1 + size
