"""Up to which time everything that clients saw has arrived: the least of what each client said of itself.

A client says *up to t* once all its events before t have been acknowledged, by whichever broker they went
to. Brokers tell each other the latest word of each client. Words only grow, so they may come in any order,
twice, or from several brokers while a client changes from one to the next.
"""

import math
from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace

GONE = math.inf
"""The word of a client that will not send any more."""


class Progress:
    def __init__(self, clients: Iterable[str]) -> None:
        self._upto = dict.fromkeys(clients, -math.inf)
        self._news: set[str] = set()
        self.latest = -math.inf
        """The latest time that a client has spoken of: about now."""
        self._least = [(t, client) for client, t in self._upto.items()]
        """A heap of words, each client's once; those below the top may be out of date."""
        heapify(self._least)

    @property
    def arrived(self) -> float:
        """All events before this time are where they belong."""
        return self._least[0][0] if self._least else GONE

    def hear(self, client: str, upto: float, *, itself: bool = True) -> bool:
        """Returns whether ``arrived`` grew. ``itself``: whether the client said so, and not a broker who has
        told all others. A client that is not of this query is not believed."""
        before = self._upto.get(client)
        if before is None or not upto > before:
            return False
        self._upto[client] = upto
        if self.latest < upto < GONE:
            self.latest = upto
        if itself:
            self._news.add(client)
        if client != self._least[0][1]:
            return False
        arrived = self.arrived
        while self._upto[client := self._least[0][1]] > self._least[0][0]:
            heapreplace(self._least, (self._upto[client], client))
        return self.arrived > arrived

    def of(self, client: str) -> float:
        return self._upto[client]

    def news(self) -> dict[str, float]:
        """What others have not been told yet."""
        found = {client: self._upto[client] for client in sorted(self._news)}
        self._news.clear()
        return found

    def slowest(self) -> Mapping[str, float]:
        """The clients that everybody waits for."""
        return {client: upto for client, upto in self._upto.items() if upto == self.arrived}
