"""Writes a network as an ONNX file, the form that OpenCV reads.

ONNX is protobuf; a network of a handful of operators needs a few of its messages only, which are written
here by hand so that no node has to install the onnx package.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 5, 10  # opset 10: the last one in which Pad takes its margins as an attribute
FLOAT = 1
ATTRIBUTE_INT, ATTRIBUTE_INTS = 2, 7


class OnnxGraph:
    """A network under construction; each step returns the name of its output."""

    def __init__(self, name: str, shape: Sequence[int]) -> None:
        self.input = "input"
        self._name = name
        self._shape = shape
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def constant(self, values: NDArray[Any]) -> str:
        name = f"c{len(self._tensors)}"
        raw = np.ascontiguousarray(values, "<f4").tobytes()
        dims = b"".join(_number(1, extent) for extent in values.shape)
        self._tensors.append(dims + _number(2, FLOAT) + _text(8, name) + _bytes(9, raw))
        return name

    def node(self, operator: str, *inputs: str, **attributes: int | Sequence[int]) -> str:
        name = f"n{len(self._nodes)}"
        self._nodes.append(
            b"".join(_text(1, each) for each in inputs)
            + _text(2, name)
            + _text(3, name)
            + _text(4, operator)
            + b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
        )
        return name

    def encode(self, output: str, shape: Sequence[int]) -> bytes:
        graph = (
            _each(1, self._nodes)
            + _text(2, self._name)
            + _each(5, self._tensors)
            + _bytes(11, _value(self.input, self._shape))
            + _bytes(12, _value(output, shape))
        )
        opset = _bytes(8, _text(1, "") + _number(2, OPSET))
        return _number(1, IR_VERSION) + opset + _bytes(7, graph)


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, ATTRIBUTE_INT)
    return _text(1, name) + b"".join(_number(8, each) for each in value) + _number(20, ATTRIBUTE_INTS)


def _value(name: str, shape: Sequence[int]) -> bytes:
    dims = b"".join(_bytes(1, _number(1, extent)) for extent in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, FLOAT) + _bytes(2, dims)))


def _each(field: int, messages: Iterable[bytes]) -> bytes:
    return b"".join(_bytes(field, message) for message in messages)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
