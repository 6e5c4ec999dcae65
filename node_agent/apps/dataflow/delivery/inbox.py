"""What a replica knows of one input stream: what it holds, what is done, and whom it owes word of that."""

from collections.abc import Iterable, Sequence
from math import inf

from node_agent.apps.dataflow.delivery.limits import MOST_RANGES
from node_agent.apps.dataflow.delivery.positions import Positions, Range
from node_agent.apps.dataflow.model.tuples import StreamTuple


class Inbox:
    """``held``: came and not done; ``working``: the part of it that the operator is not through with.

    Both are for operators that take items one by one; windows keep their own account.

    ``reach``: the highest position that came; ``came_at``: when something came last.
    ``backlog``: held, but there is no room yet for what they will give rise to.
    ``owed``: by replica upstream, what came from it and was not reported done to it. ``untaken`` likewise, of
    what it was not told that this replica has taken.
    """

    def __init__(self, upstream: str, origin: str) -> None:
        self.upstream = upstream
        self.origin = origin
        self.held = Positions()
        self.working = Positions()
        self.done = Positions()
        self.owed: dict[str, Positions] = {}
        self.untaken: dict[str, Positions] = {}
        self.before: dict[int, int] = {}
        self.reach = 0
        self.came_at = -inf
        self.backlog: dict[int, StreamTuple] = {}

    def came(self, sender: str, first: int, last: int) -> None:
        """``first`` … ``last`` came from ``sender``, who waits to hear that it was taken, and then done."""
        for owed in (self.untaken, self.owed):
            positions = owed.get(sender)
            if positions is None:
                positions = owed[sender] = Positions()
            positions.add(first, last)

    def news(self, items: list[StreamTuple]) -> list[StreamTuple]:
        """Hold those of ``items``, which are neighbours, that are neither held nor done."""
        first, last = items[0].prev + 1, items[-1].tau
        if not (self.held.overlaps(first, last) or self.done.overlaps(first, last)):
            fresh = items
            self.held.add(first, last)
            self.working.add(first, last)
        else:
            fresh = [item for item in items if item.tau not in self.held and item.tau not in self.done]
            for item in fresh:
                self.held.add(item.prev + 1, item.tau)
                self.working.add(item.prev + 1, item.tau)
        return fresh

    def finish(self, first: int, last: int) -> None:
        """``first`` … ``last`` is done. What has not been processed need not be."""
        self.done.add(first, last)
        if len(self.done) > MOST_RANGES:
            self.done.fill()
        self.held.discard(first, last)
        for positions in self.untaken.values():
            positions.discard(first, last)
        for tau in [tau for tau in self.backlog if first <= tau <= last]:
            del self.backlog[tau]
            self.working.discard(tau, tau)


def take_owed(owed: dict[str, Positions], first: int, last: int) -> Iterable[tuple[str, list[Range]]]:
    """Whom to tell what of ``first`` … ``last``: once told, it is struck off the account."""
    for sender, positions in owed.items():
        if positions.overlaps(first, last):
            parts = positions.common(first, last)
            positions.discard(first, last)
            yield sender, parts


def stretches(items: Sequence[StreamTuple]) -> list[list[StreamTuple]]:
    """``items`` cut wherever one is not the neighbour of the one before."""
    if not items:
        return []
    if _is_one_stretch(items):
        return [list(items)]
    cut = [[items[0]]]
    for item in items[1:]:
        before = cut[-1][-1]
        if item.prev == before.tau and item.origin == before.origin:
            cut[-1].append(item)
        else:
            cut.append([item])
    return cut


def _is_one_stretch(items: Sequence[StreamTuple]) -> bool:
    """Most are: this is on the way of every tuple."""
    origin, before = items[0].origin, items[0].prev
    for item in items:
        if item.prev != before or item.origin != origin:
            return False
        before = item.tau
    return True
