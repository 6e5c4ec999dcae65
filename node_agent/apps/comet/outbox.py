"""What waits for a neighbour: numbered, kept until it is acknowledged, bounded."""

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.messages import Also, Ask, Carry, Key, Message, key_of
from node_agent.apps.comet.node_plan import StoreLimits, Stream


class Dropped(Struct, frozen=True):
    """Something that a full store gave up. ``where``: a neighbour, or the task whose instances are kept."""

    what: str
    where: str
    event: str
    number: int


class Outbox(Struct):
    """``crossed``: instances that this neighbour was sent, with their ends. ``size``: of all that waits.

    ``stalled``: streams of absent events of which even the occurrence of an instance was dropped, and its
    end. They cannot be said to be complete after that.
    """

    last: int = 0
    acknowledged: int = 0
    size: int = 0
    waiting: list[tuple[int, Message]] = field(default_factory=list)
    crossed: dict[Key, float] = field(default_factory=dict)
    stalled: dict[int, float] = field(default_factory=dict)

    def put(self, message: Message, limits: StoreLimits) -> None:
        self.last += 1
        self.size += size_of(message, limits)
        self.waiting.append((self.last, message))

    def carry(self, instance: Instance, streams: tuple[int, ...], hollow: bool, limits: StoreLimits) -> None:
        """An instance goes over a link once; after that only for which other streams it is meant."""
        key = key_of(instance)
        if key in self.crossed:
            self.put(Also(*key, streams), limits)
            return
        if not hollow:
            self.crossed[key] = instance.end
            if len(self.crossed) > limits.kept:  # it would cross again in full, and the neighbour keeps more
                del self.crossed[next(iter(self.crossed))]
        self.put(Carry(instance, streams, hollow), limits)

    def acknowledge(self, number: int, limits: StoreLimits) -> None:
        """Numbers that were never given are taken as the last one."""
        self.acknowledged = max(self.acknowledged, min(number, self.last))
        done = 0
        while done < len(self.waiting) and self.waiting[done][0] <= self.acknowledged:
            self.size -= size_of(self.waiting[done][1], limits)
            done += 1
        del self.waiting[:done]

    def forget(self, before: float) -> None:
        """No stream will carry an instance that ends earlier."""
        self.crossed = {key: end for key, end in self.crossed.items() if end >= before}

    def shrink(self, neighbour: str, streams: Mapping[int, Stream], limits: StoreLimits) -> list[Dropped]:
        """Drops what matters least, oldest first, until the rest fits: contents, then requests."""
        dropped: list[Dropped] = []
        while self.size > limits.waiting and self.waiting:
            place = min(range(len(self.waiting)), key=lambda at: self._worth(at, streams))
            dropped.append(self._drop(place, neighbour, streams, limits))
        return dropped

    def _worth(self, place: int, streams: Mapping[int, Stream]) -> tuple[int, int, int]:
        number, message = self.waiting[place]
        if isinstance(message, Ask):
            return 2, streams[message.stream].priority, number
        small = isinstance(message, Also) or message.hollow
        return int(small), max(streams[each].priority for each in message.streams), number

    def _drop(
        self, place: int, neighbour: str, streams: Mapping[int, Stream], limits: StoreLimits
    ) -> Dropped:
        number, message = self.waiting.pop(place)
        self.size -= size_of(message, limits)
        if isinstance(message, Ask):
            return Dropped("request", neighbour, min(message.bounds), message.number)
        if isinstance(message, Also):
            self._stall(message.streams, self.crossed.get((message.event, message.number)), streams)
            return Dropped("instance", neighbour, message.event, message.number)
        key = key_of(message.instance)
        self.crossed.pop(key, None)
        if message.hollow:
            self._stall(message.streams, message.instance.end, streams)
            return Dropped("instance", neighbour, *key)
        watched = dict.fromkeys(each for each in message.streams if streams[each].absent)
        for later in [each for each in self.waiting if _refers(each[1], key)]:
            self.waiting.remove(later)
            self.size -= size_of(later[1], limits)
            assert isinstance(later[1], Also)
            watched.update(dict.fromkeys(each for each in later[1].streams if streams[each].absent))
        if watched:
            hollow = Carry(message.instance, tuple(watched), hollow=True)
            self.waiting.insert(place, (number, hollow))
            self.size += size_of(hollow, limits)
        return Dropped("instance", neighbour, *key)

    def _stall(self, numbers: Iterable[int], end: float | None, streams: Mapping[int, Stream]) -> None:
        for each in numbers:
            if streams[each].absent:
                self.stalled[each] = min(self.stalled.get(each, math.inf), -math.inf if end is None else end)


def _refers(message: Message, key: Key) -> bool:
    return isinstance(message, Also) and (message.event, message.number) == key


def size_of(message: Message, limits: StoreLimits) -> int:
    full = isinstance(message, Carry) and not message.hollow
    return limits.event if full else limits.request
