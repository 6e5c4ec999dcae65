"""Stores a neighbour's neighbours as its HELLOs list them: at which cost, and until when."""

from collections.abc import Iterator, Mapping
from itertools import islice

from node_agent.olsr.hello import HelloContent

MAX_LISTED = 512
NEVER = 1 << 62

_NOBODY: Mapping[int, int] = {}


class Listing:
    """``costs`` is replaced, never changed."""

    __slots__ = ("_latest", "_latest_until", "_others_until", "_own", "costs", "next_expiry", "refused")

    def __init__(self, own: frozenset[int]) -> None:
        self.costs: Mapping[int, int] = _NOBODY
        self.next_expiry = NEVER
        self.refused = 0  # how many did not fit at the last change
        self._own = own  # left out: that a neighbour is next to us is known
        self._latest: Mapping[int, int] = _NOBODY  # what the last HELLO listed
        self._latest_until = 0
        self._others_until: dict[int, int] = {}  # of those that only earlier HELLOs listed

    def update(self, content: HelloContent, until: int) -> bool:
        """Returns whether anything changed; most HELLOs repeat the list."""
        if content.listed == self._latest and not self._others_until:
            self._latest_until = self.next_expiry = until
            return False
        costs = dict(content.listed)
        for address in self._own:
            costs.pop(address, None)
        others: dict[int, int] = {}
        if not self.costs.keys() <= content.mentioned:
            others = {a: valid for a, valid in self.each_until() if a not in content.mentioned}
            costs = {address: self.costs[address] for address in others} | costs
        self.refused = max(0, len(costs) - MAX_LISTED)
        if self.refused:
            costs = dict(islice(costs.items(), MAX_LISTED))
        self._latest, self._latest_until, self._others_until = content.listed, until, others
        self.next_expiry = min(until, *others.values()) if others else until
        return self._replace(costs)

    def expire(self, now: int) -> bool:
        """Returns whether an entry has expired."""
        if self.next_expiry > now:
            return False
        if self._latest_until <= now:
            self._latest = _NOBODY
        valid = {address: until for address, until in self.each_until() if until > now}
        self._others_until = {a: until for a, until in valid.items() if a not in self._latest}
        self.next_expiry = min(valid.values(), default=NEVER)
        return self._replace({address: self.costs[address] for address in valid})

    def each_until(self) -> Iterator[tuple[int, int]]:
        """Yields the listed addresses, and until when each is valid."""
        others, latest_until = self._others_until, self._latest_until
        for address in self.costs:
            yield address, others.get(address, latest_until)

    def _replace(self, costs: Mapping[int, int]) -> bool:
        if costs == self.costs:
            return False
        self.costs = costs
        return True
