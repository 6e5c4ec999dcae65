"""The operator as a migration sees it: one result for each tuple, so it stands between selections always.

The machines ask for results at once, and an operator takes its time. So the first question for a tuple is
answered with None, and makes somebody work on it; once the result is there, the machine is asked to go on.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from node_agent.migration.live.values import Item, Savepoint


class Result(NamedTuple):
    position: int
    payload: bytes
    accepted: Callable[[], None]
    """Called if the result counts: an operator that has moved may have worked in vain."""


class Steps:
    """``wake`` is called when a tuple is wanted. It is a ``Movable``."""

    def __init__(self, at: Savepoint, wake: Callable[[], None]) -> None:
        self._at, self._wake = at, wake
        self.wanted: Item | None = None
        self.result: Result | None = None

    at_boundary = True

    def push(self, stream: str, item: Item) -> Sequence[bytes] | None:
        result = self.result
        if result is None or result.position != item.position:
            if self.wanted is None or self.wanted.position != item.position:
                self.wanted = item
                self._wake()
            return None
        self._at = Savepoint(((stream, item.position),), self._at.outputs + 1)
        self.result = None
        result.accepted()
        return (result.payload,)

    def boundary(self) -> Savepoint:
        return self._at
