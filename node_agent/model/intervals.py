"""A set of whole numbers, stored as intervals: small if the numbers are mostly consecutive."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Intervals:
    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int | None = None) -> None:
        """Adds ``first`` … ``last``, both included; one number if ``last`` is not given."""
        last = first if last is None else last
        if last < first:
            return
        begin = bisect_left(self._lasts, first - 1)
        end = bisect_right(self._firsts, last + 1)
        if begin < end:
            first = min(first, self._firsts[begin])
            last = max(last, self._lasts[end - 1])
        self._firsts[begin:end] = [first]
        self._lasts[begin:end] = [last]

    def discard(self, first: int, last: int) -> None:
        """Removes ``first`` … ``last``, as far as they are in the set."""
        firsts, lasts = self._firsts, self._lasts
        begin = bisect_left(lasts, first)
        end = bisect_right(firsts, last)
        if begin >= end:
            return
        before, after = firsts[begin], lasts[end - 1]
        new_firsts: list[int] = []
        new_lasts: list[int] = []
        if before < first:
            new_firsts.append(before)
            new_lasts.append(first - 1)
        if after > last:
            new_firsts.append(last + 1)
            new_lasts.append(after)
        firsts[begin:end] = new_firsts
        lasts[begin:end] = new_lasts

    def __contains__(self, number: int) -> bool:
        return self.covers(number, number)

    def covers(self, first: int, last: int) -> bool:
        """Whether every number of ``first`` … ``last`` is in the set."""
        index = bisect_right(self._firsts, first) - 1
        return last < first or (index >= 0 and last <= self._lasts[index])

    def overlaps(self, first: int, last: int) -> bool:
        """Whether any number of ``first`` … ``last`` is in the set."""
        index = bisect_left(self._lasts, first)
        return first <= last and index < len(self._firsts) and self._firsts[index] <= last

    def first_missing(self) -> int:
        """Returns the smallest positive number that is not in the set."""
        return self._lasts[0] + 1 if self._firsts and self._firsts[0] <= 1 else 1

    def last(self) -> int:
        """Returns the largest number in the set; 0 if it is empty."""
        return self._lasts[-1] if self._lasts else 0

    def fill(self, gaps: int = 1) -> None:
        """Closes the lowest gaps, so that the set stays small if numbers are lost."""
        closed = min(gaps, len(self._firsts) - 1)
        if closed > 0:
            del self._firsts[1 : 1 + closed], self._lasts[:closed]

    def drop_lowest(self) -> None:
        """Removes the lowest interval."""
        del self._firsts[:1], self._lasts[:1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(tuple(zip(self._firsts, self._lasts, strict=True)))

    def __len__(self) -> int:
        """Returns how many intervals there are."""
        return len(self._firsts)
