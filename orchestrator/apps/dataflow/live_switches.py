"""Which changes of a route are switches, and how many there were: counted as the report does.

A first route and a route that comes back are none: a → none → a is no change of replica, a → none → b is one.
Switches in the measured time count, of replicas that emitted or received something in that time.
"""

from collections import Counter


def is_switch(old: str | None, new: str | None) -> bool:
    """``old``: the replica that was used last, also if there was no route since."""
    return old is not None and new is not None and old != new


class Switches:
    def __init__(self) -> None:
        self._used: dict[str, str] = {}
        self._count: Counter[str] = Counter()
        self._carriers: set[str] = set()
        self._from, self._until = float("-inf"), float("inf")

    def begin(self, t: float) -> None:
        self._from = t
        self._count.clear()
        self._carriers.clear()

    def finish(self, t: float) -> None:
        self._until = t

    def used(self, key: str) -> str | None:
        """Returns the replica that a replica's output went to last."""
        return self._used.get(key)

    def carried(self, t: float, replica: str) -> None:
        if self._from <= t < self._until:
            self._carriers.add(replica)

    def take(self, t: float, replica: str, downstream: str, old: str | None, new: str | None) -> None:
        key = f"{replica}>{downstream}"
        if is_switch(old or self._used.get(key), new) and self._from <= t < self._until:
            self._count[replica] += 1
        if new is not None:
            self._used[key] = new

    def count(self) -> int:
        return sum(count for replica, count in self._count.items() if replica in self._carriers)
