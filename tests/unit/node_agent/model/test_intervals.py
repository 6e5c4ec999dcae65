"""Sets of numbers as intervals behave like sets."""

from hypothesis import given
from hypothesis import strategies as st

from node_agent.model.intervals import Intervals

RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(-1, 8)), max_size=12)


@given(RANGES, st.integers(0, 50), st.integers(0, 10))
def test_like_a_set(ranges: list[tuple[int, int]], first: int, length: int) -> None:
    intervals, plain = Intervals(), set[int]()
    for start, more in ranges:
        intervals.add(start, start + more)
        plain |= set(range(start, start + more + 1))
    asked = range(first, first + length)
    assert {n for a, b in intervals for n in range(a, b + 1)} == plain
    assert intervals.covers(first, first + length - 1) == all(n in plain for n in asked)
    assert intervals.overlaps(first, first + length - 1) == any(n in plain for n in asked)
    assert (first in intervals) == (first in plain)
    assert intervals.first_missing() == next(n for n in range(1, 60) if n not in plain)
    assert len(intervals) == sum(n - 1 not in plain for n in plain)
    gaps = len(intervals)
    intervals.fill()
    assert len(intervals) == (gaps - 1 if gaps > 1 else gaps)
    assert all(n in intervals for n in plain)
