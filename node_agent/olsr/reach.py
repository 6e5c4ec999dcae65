"""Finds which nodes can be reached, searching only as far as needed."""

from collections.abc import Iterable, Mapping


class Reach:
    def __init__(self, first: Iterable[int], edges: Mapping[int, Mapping[int, int]]) -> None:
        self._found = set(first)
        self._unexplored = list(self._found)
        self._edges = edges

    def covers(self, nodes: set[int]) -> bool:
        """Says whether all these nodes can be reached."""
        found, unexplored, edges = self._found, self._unexplored, self._edges
        # Depth first: after a few steps most nodes are next to a visited one.
        while unexplored and not nodes <= found:
            if beyond := edges.get(unexplored.pop()):
                new = set(beyond) - found
                found |= new
                unexplored += new
        return nodes <= found
