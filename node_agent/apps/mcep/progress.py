"""Up to which time everything that clients saw has arrived: the least of what each client said of itself.

A client says *up to t* once all its events before t have been acknowledged, by whichever broker they went
to. Brokers tell each other the latest word of each client. Words only grow, so they may come in any order,
twice, or from several brokers while a client changes from one to the next.

Best effort does not wait for everybody: ``ready`` leaves out clients that have said nothing for a while.
"""

import math
from collections.abc import Iterable, Mapping

GONE = math.inf
"""The word of a client that will not send any more."""
BLOCK = 64
"""Clients of which the least word is kept. A word that was not the least of its block costs a comparison."""


class Progress:
    def __init__(self, clients: Iterable[str]) -> None:
        self._places = {client: place for place, client in enumerate(dict.fromkeys(clients))}
        self._words = [-math.inf] * len(self._places)
        self._least = [-math.inf] * math.ceil(len(self._places) / BLOCK)
        """Of each block."""
        self._news: set[str] = set()
        self._looks = 0
        self._heard: list[int] = []
        """By place, at which look a client was heard last; empty until somebody is heard."""
        self.latest = -math.inf
        """The latest time that a client has spoken of: about now."""
        self.arrived = -math.inf if self._places else GONE
        """All events before this time are where they belong."""
        self.ready = self.arrived
        """The same of those clients that were heard in the last looks."""

    def hear(self, client: str, upto: float, *, itself: bool = True) -> bool:
        """Returns whether ``arrived`` grew. ``itself``: whether the client said so, and not a broker who has
        told all others. A client that is not of this query is not believed."""
        return self.hear_all(((client, upto),), itself=itself)

    def hear_all(self, said: Iterable[tuple[str, float]], *, itself: bool = False) -> bool:
        """The same for words of several clients."""
        places, words, least = self._places, self._words, self._least
        stale = set()
        for client, upto in said:
            place = places.get(client)
            if place is None or not upto > words[place]:
                continue
            if words[place] == least[place // BLOCK]:
                stale.add(place // BLOCK)
            words[place] = upto
            if not self._heard:
                self._heard = [self._looks] * len(words)
            self._heard[place] = self._looks
            if self.latest < upto < GONE:
                self.latest = upto
            if itself:
                self._news.add(client)
        for block in stale:
            least[block] = min(words[block * BLOCK : (block + 1) * BLOCK])
        return bool(stale) and self._grow(min(least))

    def look(self, patience: int) -> None:
        """Call it every now and then: who was not heard for more than ``patience`` looks is left out of
        ``ready``."""
        self._looks += 1
        oldest = self._looks - patience
        pairs = zip(self._words, self._heard, strict=False)
        heard = [word for word, at in pairs if at >= oldest and word < GONE]
        self.ready = max(self.ready, self.arrived, min(heard, default=self.arrived))

    def _grow(self, arrived: float) -> bool:
        before, self.arrived = self.arrived, arrived
        return arrived > before

    def of(self, client: str) -> float:
        return self._words[self._places[client]]

    def news(self) -> dict[str, float]:
        """What others have not been told yet."""
        found = {client: self.of(client) for client in sorted(self._news)}
        self._news.clear()
        return found

    def slowest(self) -> Mapping[str, float]:
        """The clients that everybody waits for."""
        return {client: self.arrived for client in self._places if self.of(client) == self.arrived}
