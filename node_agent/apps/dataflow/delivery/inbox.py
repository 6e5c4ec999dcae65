"""What a replica knows of one input stream: what it holds, what is done, and what it must acknowledge to
whom.
"""

from collections.abc import Iterable, Sequence
from math import inf

from node_agent.apps.dataflow.delivery.limits import MOST_RANGES
from node_agent.apps.dataflow.delivery.positions import Positions, Range
from node_agent.apps.dataflow.model.tuples import StreamTuple


class Inbox:
    """``held``: positions that arrived and are not done. ``working``: those of them that the operator has not
    finished. Both are for operators that take items one by one; windows do their own bookkeeping.

    ``reach``: the highest position that arrived. ``came_at``: when the last item arrived. ``backlog``: held
    items whose results there is no room for yet. ``owed``: by replica upstream, what arrived from it and is
    not yet acknowledged to it as done; ``untaken``: the same for what is not yet acknowledged as taken.
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
        """Notes that ``first`` … ``last`` arrived from ``sender``, which expects two acknowledgements: taken,
        and done.
        """
        for owed in (self.untaken, self.owed):
            positions = owed.get(sender)
            if positions is None:
                positions = owed[sender] = Positions()
            positions.add(first, last)

    def news(self, items: list[StreamTuple]) -> list[StreamTuple]:
        """Holds those of the neighbours ``items`` that are neither held nor done. Returns them."""
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
        """Marks ``first`` … ``last`` as done. What has not been processed need not be processed any more."""
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
    """Yields by sender which parts of ``first`` … ``last`` must be acknowledged to it, and removes them from
    ``owed``.
    """
    for sender, positions in owed.items():
        if positions.overlaps(first, last):
            parts = positions.common(first, last)
            positions.discard(first, last)
            yield sender, parts


def stretches(items: Sequence[StreamTuple]) -> list[list[StreamTuple]]:
    """Cuts ``items`` wherever an item does not follow directly on the one before."""
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
    """Whether there is nothing to cut. Usually so; it is checked for every tuple, and must be fast."""
    origin, before = items[0].origin, items[0].prev
    for item in items:
        if item.prev != before or item.origin != origin:
            return False
        before = item.tau
    return True
