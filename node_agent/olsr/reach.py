"""Whom a node can reach at all, searched no further than somebody asks."""

from collections.abc import Iterable, Mapping


class Reach:
    def __init__(self, first: Iterable[int], edges: Mapping[int, Mapping[int, int]]) -> None:
        self._found = set(first)
        self._unexplored = list(self._found)
        self._edges = edges

    def covers(self, nodes: set[int]) -> bool:
        """Whether all of them can be reached."""
        found, unexplored, edges = self._found, self._unexplored, self._edges
        # Straight ahead: after a few steps most of a network is next to somebody on the way.
        while unexplored and not nodes <= found:
            if beyond := edges.get(unexplored.pop()):
                new = set(beyond) - found
                found |= new
                unexplored += new
        return nodes <= found
