"""Converts a node's times to the orchestrator's; every reader of a run's records applies it.

Between two measurements the offset is interpolated; before the first and after the last it is constant.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import ValidationError

from orchestrator.clocks.book import NodeClock, read_book
from orchestrator.clocks.offsets import Offset
from orchestrator.errors import BadInput

FIRST_NS, LAST_NS = -(2**63), 2**63 - 1


class Piece(NamedTuple):
    """From ``from_ns`` until before ``until_ns`` of a clock's own time: it is ahead of the orchestrator's by
    ``offset_ns`` at ``at_ns``, and by ``slope`` more for every nanosecond after that."""

    from_ns: int
    until_ns: int
    at_ns: int
    offset_ns: int
    slope: float

    def ahead_ns(self, t_ns: int) -> int:
        return self.offset_ns + round(self.slope * (t_ns - self.at_ns))


Pieces = tuple[Piece, ...]
"""Covers all of time without gaps; empty if the clock was never measured."""


def clocks_in(manifest: Mapping[str, Any]) -> dict[str, Pieces]:
    """Returns clocks by node; empty if all nodes use the orchestrator's clock."""
    try:
        book = read_book(manifest.get("clocks"))
    except ValidationError as error:
        raise BadInput(f"clocks in manifest.json cannot be read: {error}") from None
    return {node: pieces_of(book.of(node)) for node in book.nodes}


def pieces_of(clock: NodeClock) -> Pieces:
    samples: list[Offset] = []
    for sample in clock.used():
        # A clock that was set back shows a time twice: the run is invalid, but must stay readable.
        if not samples or sample.node_ns > samples[-1].node_ns:
            samples.append(sample)
    if not samples:
        return ()
    first, last = samples[0], samples[-1]
    before = Piece(FIRST_NS, first.node_ns, first.node_ns, first.offset_ns, 0.0)
    after = Piece(last.node_ns, LAST_NS, last.node_ns, last.offset_ns, 0.0)
    return (before, *(_line(one, other) for one, other in pairwise(samples)), after)


def ahead_ns(pieces: Pieces, t_ns: int) -> int:
    """Returns what to subtract from a time that the node wrote; 0 if its clock is unknown."""
    return next((piece.ahead_ns(t_ns) for piece in pieces if t_ns < piece.until_ns), 0)


def _line(one: Offset, other: Offset) -> Piece:
    slope = (other.offset_ns - one.offset_ns) / (other.node_ns - one.node_ns)
    return Piece(one.node_ns, other.node_ns, one.node_ns, one.offset_ns, slope)


def most_ahead(clocks: Sequence[Pieces]) -> Pieces:
    """Returns, for each time, the clock that is most ahead of the orchestrator's."""
    known = list(dict.fromkeys(pieces for pieces in clocks if pieces))
    if len(known) < 2:
        return known[0] if known else ()
    cuts = sorted({piece.from_ns for pieces in known for piece in pieces} | {LAST_NS})
    chosen = []
    for begin, end in pairwise(cuts):
        middle = (max(begin, cuts[1]) + min(end, cuts[-2])) // 2
        there = [next(piece for piece in pieces if begin < piece.until_ns) for pieces in known]
        most = max(piece.ahead_ns(middle) for piece in there)
        ahead = next(piece for piece in there if piece.ahead_ns(middle) == most)
        chosen.append(ahead._replace(from_ns=begin, until_ns=end))
    return tuple(chosen)
