"""Chooses what a full set evicts: the least credible entries, several at once.

A full set that refused newcomers would stay closed while somebody fills it with invented entries.
"""

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Any, TypeVar

K = TypeVar("K")

SHARE = 8
ESTABLISHED = 3
"""An entry heard so often is more credible than all that were heard less often."""


def least_credible(known: Iterable[K], credibility: Callable[[K], Any]) -> list[K]:
    """Returns an eighth of the entries, at least one: choosing them one
    by one would cost too much in a flood."""
    candidates = list(known)
    return nsmallest(max(1, len(candidates) // SHARE), candidates, credibility)
