"""A stream's items at a host: without gaps up to ``last``, and perhaps others beyond a gap."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from node_agent.migration.live.values import Item


@dataclass(slots=True)
class Buffer:
    """``floor``: what is not needed any more, or was put out. ``most_items``, ``most_bytes``: what is held at
    most; more is not taken."""

    most_items: int
    most_bytes: int
    floor: int = 0
    last: int = 0
    size: int = 0
    """Bytes that are held."""
    held: dict[int, bytes] = field(default_factory=dict)
    overflowed: bool = False
    """Whether something was not taken since this was last cleared."""

    def begin(self, floor: int) -> None:
        """Forgets everything and begins after ``floor``."""
        self.floor = self.last = floor
        self.held, self.size, self.overflowed = {}, 0, False

    def add(self, items: Iterable[Item]) -> None:
        for position, payload in items:
            if position <= self.last or position in self.held:
                continue
            if len(self.held) >= self.most_items or self.size + len(payload) > self.most_bytes:
                self.overflowed = True
                continue
            self.held[position] = payload
            self.size += len(payload)
        while self.last + 1 in self.held:
            self.last += 1

    @property
    def gap(self) -> bool:
        """Whether items are missing before others."""
        return len(self.held) > self.last - self.floor

    def since(self, position: int, upto: int | None = None) -> list[Item]:
        """Returns the items from ``position`` on, up to the first gap."""
        end = self.last if upto is None else min(upto, self.last)
        return [Item(each, self.held[each]) for each in range(max(position, self.floor + 1), end + 1)]

    def trim(self, upto: int) -> None:
        """Forgets items up to ``upto``, also those that have not come."""
        if upto > self.last:
            for position in [each for each in self.held if each <= upto]:
                self.size -= len(self.held.pop(position))
            self.floor = self.last = upto
            self.add(())
        for position in range(self.floor + 1, upto + 1):
            self.size -= len(self.held.pop(position))
            self.floor = position
