"""Whom a node can reach at all, found ring by ring and only as far as somebody asks."""

from collections.abc import Iterable, Mapping


class Reach:
    def __init__(self, first: Iterable[int], edges: Mapping[int, Mapping[int, int]]) -> None:
        self._found = self._outermost = set(first)
        self._edges = edges

    def covers(self, nodes: set[int]) -> bool:
        while self._outermost and not nodes <= self._found:
            self._widen()
        return nodes <= self._found

    def _widen(self) -> None:
        edges = self._edges
        next_to = set[int]().union(*[edges[node] for node in self._outermost if node in edges])
        self._outermost = next_to - self._found
        self._found = self._found | self._outermost
