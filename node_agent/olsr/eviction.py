"""What a full set forgets: the least credible, several at once.

A set that refused newcomers when it is full would be closed for as long as somebody fills it with inventions.
"""

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Any, TypeVar

K = TypeVar("K")

SHARE = 8
ESTABLISHED = 3
"""Heard so often, somebody is more credible than all who were heard less often."""


def least_credible(known: Iterable[K], credibility: Callable[[K], Any]) -> list[K]:
    """An eighth of them, at least one: choosing them one by one would cost too much in a flood."""
    candidates = list(known)
    return nsmallest(max(1, len(candidates) // SHARE), candidates, credibility)
