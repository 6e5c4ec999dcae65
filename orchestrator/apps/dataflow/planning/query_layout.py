"""Computes the positions of a query's steps in a drawing, from left to right.

It is a small layered layout: each step is one layer right of its inputs, edges that skip layers get a free
lane, and steps move up or down until neighbours face each other.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from orchestrator.apps.dataflow.planning.query_graph import Step

MARGIN = 24
_ACROSS, _DOWN, _HEADING, _LANE = 64, 26, 22, 10.0
_SWEEPS = 8


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def layout(
    steps: dict[str, Step], edges: list[tuple[str, str]], size: Callable[[Step], tuple[float, float]]
) -> tuple[dict[str, Box], dict[tuple[str, str, int], Box]]:
    """Returns boxes of the steps, and lanes of the edges where they cross a layer."""
    layer: dict[str, int] = {}
    for name in steps:
        layer[name] = max((layer[start] + 1 for start, end in edges if end == name), default=0)
    columns: list[list[object]] = [[] for _ in range(max(layer.values()) + 1)]
    before: dict[object, list[object]] = {}
    after: dict[object, list[object]] = {}
    for name in steps:
        columns[layer[name]].append(name)
    for start, end in edges:
        chain: list[object] = [start]
        for passed in range(layer[start] + 1, layer[end]):
            columns[passed].append((start, end, passed))
            chain.append((start, end, passed))
        chain.append(end)
        for left, right in pairwise(chain):
            after.setdefault(left, []).append(right)
            before.setdefault(right, []).append(left)
    every = [node for column in columns for node in column]
    sizes = {node: size(steps[node]) if isinstance(node, str) else (0.0, _LANE) for node in every}
    middles = _middles(columns, before, after, sizes)
    top = min(middles[node] - sizes[node][1] / 2 for node in middles)
    boxes: dict[str, Box] = {}
    lanes: dict[tuple[str, str, int], Box] = {}
    x = float(MARGIN)
    for column in columns:
        wide = max(sizes[node][0] for node in column)
        for node in column:
            width, height = sizes[node]
            y = middles[node] - height / 2 - top + MARGIN + _HEADING
            if isinstance(node, str):
                boxes[node] = Box(x + (wide - width) / 2, y, width, height)
            elif isinstance(node, tuple):
                lanes[node] = Box(x, y, wide, height)
        x += wide + _ACROSS
    return boxes, lanes


def _middles(
    columns: list[list[object]],
    before: dict[object, list[object]],
    after: dict[object, list[object]],
    sizes: dict[object, tuple[float, float]],
) -> dict[object, float]:
    """Returns vertical positions: near the mean of the neighbours, in an order that keeps them apart."""
    middles: dict[object, float] = {}
    for column in columns:
        _stack(column, dict.fromkeys(column, 0.0), sizes, middles)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            towards = before if forward else after
            wanted = {}
            for node in column:
                near = [middles[other] for other in towards.get(node, [])]
                wanted[node] = sum(near) / len(near) if near else middles[node]
            column.sort(key=lambda node: wanted[node])
            _stack(column, wanted, sizes, middles)
    return middles


def _stack(
    column: list[object],
    wanted: dict[object, float],
    sizes: dict[object, tuple[float, float]],
    middles: dict[object, float],
) -> None:
    """Places items as close to their wishes as their heights allow, without a bias to either side."""
    bottom = float("-inf")
    for node in column:
        middles[node] = max(wanted[node], bottom + _DOWN + sizes[node][1] / 2)
        bottom = middles[node] + sizes[node][1] / 2
    shift = sum(wanted[node] - middles[node] for node in column) / len(column)
    for node in column:
        middles[node] += shift
