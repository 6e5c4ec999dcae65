"""The roles of an operator's neighbours: an upstream keeps and streams items, a downstream takes outputs.

Both know who the owner is. They believe the owner about its successor, and the coordinator; what anyone else
sends is answered with who the owner is.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Begins,
    Deliver,
    Effect,
    Hail,
    Items,
    Message,
    Moved,
    Outputs,
    Sent,
    StopTo,
    StreamsTo,
    StreamTo,
    Succeed,
    Superseded,
    Trim,
    Welcome,
)
from node_agent.migration.live.values import DEFAULT_LIMITS, Item, Limits, batches, item_size


def superseded(owner: str, known: int, term: int, host: str) -> list[Effect]:
    """What the owner so far is told if another host is appointed: it may be alive."""
    return [Sent(owner, Superseded(term, host))] if term > known and owner != host else []


@dataclass(slots=True)
class Upstream:
    """Streams to the owner, and meanwhile to the host that will follow it. It keeps every item until no host
    needs it."""

    name: str
    owner: str
    coordinator: str
    limits: Limits = DEFAULT_LIMITS
    term: int = 1
    last: int = 0
    kept: deque[Item] = field(default_factory=deque)
    streams: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.streams.add(self.owner)

    @property
    def full(self) -> bool:
        """Whether the source should wait."""
        return len(self.kept) >= self.limits.items

    def emit(self, payload: bytes) -> list[Effect]:
        self.last += 1
        item = Item(self.last, payload)
        self.kept.append(item)
        return [Sent(host, Items((item,))) for host in sorted(self.streams)]

    def receive(self, sender: str, message: Message) -> list[Effect]:
        match message:
            case Succeed(term, host) if sender == self.owner or (host == self.owner and term == self.term):
                return self._follow(term, host)
            case Appoint(term, host) if sender == self.coordinator:
                return [*superseded(self.owner, self.term, term, host), *self._follow(term, host)]
            case Hail(term, since):
                return self._hailed(sender, term, since)
            case StreamTo(host, since) if sender == self.owner:
                first = self._from(since or self.last + 1)
                self.streams.add(host)
                answers: list[Effect] = [Sent(host, Begins(first)), Sent(sender, StreamsTo(host, first))]
                return [*answers, *self._stream(host, first)]
            case StopTo(host) if sender == self.owner and host != self.owner:
                self.streams.discard(host)
            case Trim(upto) if sender == self.owner:
                while self.kept and self.kept[0].position <= upto:
                    self.kept.popleft()
            case Succeed() | StreamTo() | Trim():
                return [Sent(sender, Superseded(self.term, self.owner))]
        return []

    def _follow(self, term: int, host: str) -> list[Effect]:
        if term > self.term:
            self.term, self.owner = term, host
            self.streams &= {host}
        return [Sent(self.owner, Moved(self.term, self.owner in self.streams))]

    def _hailed(self, sender: str, term: int, since: int) -> list[Effect]:
        if sender != self.owner or term < self.term:
            self.streams.discard(sender)  # it has started again, so what was sent to it is lost
            return [Sent(sender, Superseded(self.term, self.owner))] if term <= self.term else []
        if term > self.term:  # appointed again; the coordinator's message is on its way
            self.streams.discard(sender)
            return []
        first = self._from(since)
        self.streams.add(sender)
        return [Sent(sender, Moved(term, True)), Sent(sender, Begins(first)), *self._stream(sender, first)]

    def _from(self, since: int) -> int:
        """What was trimmed cannot be sent again; nobody who needs it is left."""
        return max(since, self.kept[0].position if self.kept else self.last + 1)

    def _stream(self, host: str, first: int) -> Iterator[Effect]:
        items = (item for item in self.kept if item.position >= first)
        for batch in batches(items, item_size, self.limits):
            yield Sent(host, Items(batch))


@dataclass(slots=True)
class Downstream:
    """Takes each output once and in order, whichever host sends it."""

    name: str
    owner: str
    coordinator: str
    term: int = 1
    last: int = 0

    def receive(self, sender: str, message: Message) -> list[Effect]:
        match message:
            case Outputs(first, payloads) if sender == self.owner:
                return self._take(sender, first, payloads)
            case Succeed(term, host) if sender == self.owner or (host == self.owner and term == self.term):
                return self._follow(term, host)
            case Appoint(term, host) if sender == self.coordinator:
                return [*superseded(self.owner, self.term, term, host), *self._follow(term, host)]
            case Hail(term) if sender == self.owner and term == self.term:
                return [Sent(sender, Welcome(term, self.last + 1))]
            case Hail(term) if term > self.term:
                return []  # what makes it the owner is on its way
            case Hail() | Outputs() | Succeed():
                return [Sent(sender, Superseded(self.term, self.owner))]
        return []

    def _follow(self, term: int, host: str) -> list[Effect]:
        if term > self.term:
            self.term, self.owner = term, host
        return [Sent(self.owner, Welcome(self.term, self.last + 1))]

    def _take(self, sender: str, first: int, payloads: tuple[bytes, ...]) -> list[Effect]:
        if first > self.last + 1:  # others are missing before it
            return [Sent(sender, Welcome(self.term, self.last + 1))]
        news = payloads[self.last + 1 - first :]
        if not news:
            return [Sent(sender, Ack(self.last))]
        begin = self.last + 1
        self.last += len(news)
        return [Deliver(begin, news), Sent(sender, Ack(self.last))]
