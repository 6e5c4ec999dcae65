"""Names of nodes that are counted: ``car1..car20`` in a list stands for ``car1``, ``car2``, … ``car20``."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.spec.problems import Finding, Unusable, shown

RANGE_PATTERN = r"[a-z0-9_-]*\d+\.\.[a-z0-9_-]*\d+"
_RANGE = re.compile(r"([a-z0-9_-]*?)(\d+)\.\.([a-z0-9_-]*?)(\d+)")
_MOST = 10_000


def counted(listed: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Gives each name with the index of its entry. Raises Unusable for a range that cannot be counted."""
    for index, entry in enumerate(listed):
        found = _RANGE.fullmatch(entry) if isinstance(entry, str) else None
        if found is None:
            yield index, entry
            continue
        prefix, first, other, last = found.groups()
        if other != prefix or not 0 <= int(last) - int(first) < _MOST or len(first) > len(last):
            text = f"{shown(entry)} does not count from one node to another"
            raise Unusable(Finding((index,), text, "write it like car1..car20"))
        width = len(first) if first.startswith("0") else 0
        for number in range(int(first), int(last) + 1):
            yield index, f"{prefix}{number:0{width}}"


def count_of(listed: Sequence[Any]) -> int:
    """How many names a list has, whether or not they are usable."""
    try:
        return sum(1 for _ in counted(listed))
    except Unusable:
        return len(listed)
