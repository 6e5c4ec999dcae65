"""What became of tuples so far, as ranges of positions that share a fate: small for any number of tuples."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

OPEN, FAILED, SET_ASIDE, DROPPED, DELIVERED = range(5)
"""What counts if several apply: the largest. As in the report, a connection's failure counts least: what was
on it may have arrived."""
MOST_HOPS = 24
"""Of one tuple; later ones are not remembered."""


class Hop(NamedTuple):
    """A tuple between two replicas. Times are None while the record of that end was not read."""

    sender: str
    receiver: str
    sent: float | None = None
    received: float | None = None


class Holder(NamedTuple):
    """Who wrote the last record of a tuple, and when."""

    t: float
    node: str
    boot: int


class Life(NamedTuple):
    """``inside``: born in the measured time; None while that is not known. Settled ones have no hops."""

    fate: int = OPEN
    reason: str = ""
    inside: bool | None = None
    hops: tuple[Hop, ...] = ()
    last: Holder | None = None

    def seen(self, by: Holder) -> "Life":
        if self.fate != OPEN or (self.last is not None and self.last.t > by.t):
            return self
        return self._replace(last=by)

    def passed(self, hop: Hop) -> "Life":
        """Takes one end of a hop: when it was first sent, or first received."""
        if self.fate != OPEN:
            return self
        for at, known in enumerate(self.hops):
            if known[:2] == hop[:2]:
                both = hop._replace(
                    sent=_earlier(known.sent, hop.sent), received=_earlier(known.received, hop.received)
                )
                return self._replace(hops=(*self.hops[:at], both, *self.hops[at + 1 :]))
        return self._replace(hops=(*self.hops, hop)) if len(self.hops) < MOST_HOPS else self

    def settled(self, fate: int, reason: str = "") -> "Life":
        if fate < self.fate:
            return self
        return Life(fate, reason, self.inside)

    def first_to_arrive(self, known: "Life") -> "Life":
        """Returns this one, unless the tuple was delivered before."""
        return known if known.fate == DELIVERED else self

    def on_connection_since(self) -> float | None:
        """Returns when it was sent, if it was last on a connection that did not deliver it."""
        pending = [hop.sent for hop in self.hops if hop.sent is not None and hop.received is None]
        arrived = [hop.received for hop in self.hops if hop.received is not None]
        if not pending or (arrived and max(arrived) > max(pending)):
            return None
        return max(pending)


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((t for t in (one, other) if t is not None), default=None)


class Lives:
    """By position, what became of the tuples of one stream on their way to one sink."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._lives: list[Life] = []
        self.forgotten = -1
        """Positions up to this one are not remembered."""

    def change(self, first: int, last: int, become: Callable[[Life], Life]) -> None:
        """Replaces the life of each position from ``first`` to ``last``, both included."""
        first = max(first, self.forgotten + 1)
        if last < first:
            return
        begin = end = bisect_left(self._lasts, first)
        found: list[tuple[int, int, Life]] = []
        following = first
        while end < len(self._firsts) and self._firsts[end] <= last:
            low, high, life = self._firsts[end], self._lasts[end], self._lives[end]
            if low < first:
                found.append((low, first - 1, life))
                low = first
            if following < low:
                found.append((following, low - 1, become(Life())))
            following = min(high, last) + 1
            found.append((low, following - 1, become(life)))
            if high > last:
                found.append((following, high, life))
            end += 1
        if following <= last:
            found.append((following, last, become(Life())))
        self._put(begin, end, found)

    def _put(self, begin: int, end: int, found: list[tuple[int, int, Life]]) -> None:
        """Replaces pieces ``begin`` to ``end``; neighbours of the same life become one."""
        if begin > 0:
            begin -= 1
            found.insert(0, (self._firsts[begin], self._lasts[begin], self._lives[begin]))
        if end < len(self._firsts):
            found.append((self._firsts[end], self._lasts[end], self._lives[end]))
            end += 1
        merged = found[:1]
        for before, piece in pairwise(found):
            if before[1] + 1 == piece[0] and before[2] == piece[2]:
                merged[-1] = (merged[-1][0], *piece[1:])
            else:
                merged.append(piece)
        self._firsts[begin:end] = [piece[0] for piece in merged]
        self._lasts[begin:end] = [piece[1] for piece in merged]
        self._lives[begin:end] = [piece[2] for piece in merged]

    def change_all(self, become: Callable[[Life], Life]) -> None:
        found = [(first, last, become(life)) for first, last, life in self.pieces()]
        self._firsts, self._lasts, self._lives = [], [], []
        self._put(0, 0, found)

    def pieces(self) -> Iterator[tuple[int, int, Life]]:
        return zip(self._firsts, self._lasts, self._lives, strict=True)

    def forget(self, pieces: int) -> list[tuple[int, Life]]:
        """Forgets the lowest pieces; returns how many tuples they had, and what became of these."""
        gone = [(last - first + 1, life) for first, last, life in self.pieces()][:pieces]
        if gone:
            self.forgotten = self._lasts[len(gone) - 1]
            del self._firsts[: len(gone)], self._lasts[: len(gone)], self._lives[: len(gone)]
        return gone

    def __len__(self) -> int:
        return len(self._firsts)
