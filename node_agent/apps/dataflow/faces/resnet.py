"""The face network of dlib (29 convolutions, residual, 128 numbers a face), rebuilt from its trained layers.

He et al., "Deep Residual Learning", in the shape D. King trained for dlib: five levels of residual blocks,
of which the second to fifth start by halving the picture.
"""

from collections.abc import Iterator

import numpy as np

from node_agent.apps.dataflow.faces.dlib_weights import BadWeights, Floats, Layer, read_layers
from node_agent.apps.dataflow.faces.onnx_graph import OnnxGraph

SIDE = 150
EMBEDDING = 128
# (channels, blocks, whether the first block halves the picture)
LEVELS = ((32, 3, False), (64, 4, True), (128, 3, True), (256, 3, True), (256, 1, True))


def face_network(content: bytes) -> bytes:
    """dlib's file of weights as an ONNX network from 1×3×150×150 to 1×128; raises BadWeights."""
    layers = iter(read_layers(content))
    graph = OnnxGraph("dlib_face_resnet", (1, 3, SIDE, SIDE))
    output = _convolution(graph, layers, graph.input, (32, 3, 7), stride=2)
    side = (SIDE - 7) // 2 + 1
    output = graph.node("MaxPool", output, kernel_shape=(3, 3), strides=(2, 2))
    side, before = (side - 3) // 2 + 1, 32
    for channels, blocks, halves in LEVELS:
        for block in range(blocks):
            output, side = _residual(graph, layers, output, (before, channels), side, halves and block == 0)
            before = channels
    output = graph.node("GlobalAveragePool", output)
    output = graph.node("Flatten", output, axis=1)
    weights = _take(layers, "fc", before * EMBEDDING).reshape(before, EMBEDDING)
    output = graph.node("MatMul", output, graph.constant(weights))
    if next(layers, None):
        raise BadWeights("the file holds more layers than the network has")
    return graph.encode(output, (1, EMBEDDING))


def _residual(
    graph: OnnxGraph, layers: Iterator[Layer], start: str, channels: tuple[int, int], side: int, halves: bool
) -> tuple[str, int]:
    """Two convolutions beside a short cut; returns its output and the side of the picture there.

    Where the two differ in size dlib adds as if the smaller one had zeros to its right, below and behind.
    """
    before, after = channels
    stride = 2 if halves else 1
    inner = _convolution(graph, layers, start, (after, before, 3), stride)
    inner = _convolution(graph, layers, inner, (after, after, 3), 1, relu=False)
    if halves:
        start = graph.node("AveragePool", start, kernel_shape=(2, 2), strides=(2, 2))
        inner_side, side = (side - 3) // 2 + 1, side // 2
        inner = _pad(graph, inner, 0, side - inner_side)
    start = _pad(graph, start, after - before, 0)
    return graph.node("Relu", graph.node("Add", inner, start)), side


def _convolution(
    graph: OnnxGraph,
    layers: Iterator[Layer],
    start: str,
    shape: tuple[int, int, int],
    stride: int,
    relu: bool = True,
) -> str:
    """A convolution with the affine layer behind it folded into its weights."""
    filters, depth, kernel = shape
    count = filters * depth * kernel * kernel
    values = _take(layers, "con", count + filters)
    scale, shift = _take(layers, "affine", 2 * filters).reshape(2, filters)
    weights = values[:count].reshape(filters, depth, kernel, kernel) * scale[:, None, None, None]
    margin = 0 if stride > 1 else kernel // 2
    output = graph.node(
        "Conv",
        start,
        graph.constant(weights),
        graph.constant(values[count:] * scale + shift),
        kernel_shape=(kernel, kernel),
        strides=(stride, stride),
        pads=(margin,) * 4,
    )
    return graph.node("Relu", output) if relu else output


def _pad(graph: OnnxGraph, start: str, channels: int, side: int) -> str:
    if not channels and not side:
        return start
    return graph.node("Pad", start, pads=(0, 0, 0, 0, 0, channels, side, side))


def _take(layers: Iterator[Layer], kind: str, count: int) -> Floats:
    layer = next(layers, None)
    if layer is None or layer.kind != kind or len(layer.values) != count:
        found = f"{layer.kind} of {len(layer.values)}" if layer else "the end"
        raise BadWeights(f"expected a layer {kind} of {count} values, found {found}")
    return layer.values.astype(np.float32, copy=False)
