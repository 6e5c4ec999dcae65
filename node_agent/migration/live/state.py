"""Takes immutable state in chunks, few of which are under way at a time; checks the whole by its digest."""

from dataclasses import dataclass, field
from hashlib import sha256

from node_agent.migration.live.messages import Chunk, Effect, Fetch, Sent
from node_agent.migration.live.values import Card


def serve(to: str, data: bytes, card: Card, asked: Fetch, window: int) -> list[Effect]:
    """Answers a request for chunks, with at most ``window``."""
    first, end = max(0, asked.first), min(asked.first + min(asked.count, window), card.chunks)
    return [
        Sent(to, Chunk(asked.migration, k, data[k * card.chunk : (k + 1) * card.chunk]))
        for k in range(first, end)
    ]


@dataclass(slots=True)
class Assembler:
    """Asks ``provider`` for chunks one after the other. ``wrong``: the whole does not have the digest, or a
    chunk not its length."""

    migration: int
    card: Card
    provider: str
    window: int
    following: int = 0
    """The first chunk that is not here."""
    parts: list[bytes] = field(default_factory=list)
    data: bytes | None = None
    wrong: bool = False

    def ask(self, provider: str) -> list[Effect]:
        """Asks for what is missing, whatever was asked before."""
        self.provider = provider
        if self.data is not None or self.wrong:
            return []
        if not self.card.chunks:
            self._complete()
            return []
        return [Sent(provider, Fetch(self.migration, self.following, self.window))]

    def take(self, sender: str, chunk: Chunk) -> list[Effect]:
        """Takes the next chunk. A chunk that is not the next one was asked for twice; it is left out."""
        done = self.data is not None or self.wrong
        if done or sender != self.provider or chunk.index != self.following:
            return []
        if len(chunk.data) != self.card.length(chunk.index):
            self.wrong = True
            return []
        self.parts.append(chunk.data)
        self.following += 1
        if self.following == self.card.chunks:
            self._complete()
            return []
        ahead = self.following + self.window - 1
        return [Sent(sender, Fetch(self.migration, ahead, 1))] if ahead < self.card.chunks else []

    def _complete(self) -> None:
        data = b"".join(self.parts)
        self.parts.clear()
        if sha256(data).hexdigest() == self.card.digest:
            self.data = data
        else:
            self.wrong = True
