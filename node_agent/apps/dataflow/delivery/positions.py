"""Sets of positions in a stream, with the questions that delivery asks of them."""

from bisect import bisect_left, bisect_right

from node_agent.model.intervals import Intervals

Range = tuple[int, int]
"""The first and the last position, both included."""


class Positions(Intervals):
    def missing(self, first: int, last: int) -> list[Range]:
        """Returns the parts of ``first`` … ``last`` that are not in the set."""
        firsts, lasts = self._firsts, self._lasts
        index = bisect_left(lasts, first)
        gaps: list[Range] = []
        while first <= last:
            if index == len(firsts) or firsts[index] > last:
                gaps.append((first, last))
                break
            if first < firsts[index]:
                gaps.append((first, firsts[index] - 1))
            first = lasts[index] + 1
            index += 1
        return gaps

    def common(self, first: int, last: int) -> list[Range]:
        """Returns the parts of ``first`` … ``last`` that are in the set."""
        firsts, lasts = self._firsts, self._lasts
        index = bisect_left(lasts, first)
        parts: list[Range] = []
        while index < len(firsts) and firsts[index] <= last:
            parts.append((max(first, firsts[index]), min(last, lasts[index])))
            index += 1
        return parts

    def around(self, position: int) -> Range:
        """Returns the whole interval around ``position``, which must be in the set."""
        index = bisect_right(self._firsts, position) - 1
        return self._firsts[index], self._lasts[index]

    @property
    def floor(self) -> int:
        """The position up to which all positions are in the set."""
        return self.first_missing() - 1
