"""What a replica keeps of its output for one downstream operator until it is done there.

Parcels wait, are in flight to a replica, or have been taken by it. A rewind makes them wait again, the oldest
first. In best effort a parcel that was taken is done as far as this side cares.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from math import inf

from node_agent.apps.dataflow.delivery.effects import Drop, Effect, Send
from node_agent.apps.dataflow.delivery.inbox import stretches
from node_agent.apps.dataflow.delivery.limits import (
    EMPTY_PER_ITEM,
    MOST_RANGES,
    DeliveryLimits,
    Overflow,
)
from node_agent.apps.dataflow.delivery.positions import Positions, Range
from node_agent.apps.dataflow.delivery.shelf import Parcel, Shelf, State
from node_agent.apps.dataflow.delivery.spill import Spill
from node_agent.apps.dataflow.model.tuples import StreamTuple, weight_of
from node_agent.apps.dataflow.switching.route import Hop

WAITING, FLYING, TAKEN, GONE = State
FEW_BYTES = 256 * 1024
"""What is put in one go has no more, or only one item."""


class Retention:
    """``whole``: the operator needs several items for a result, so they must all go to the same replica.

    ``done``, by stream, is all that is known to be done; ``ends``: the last items of streams that ended;
    ``reach``: the highest positions that were ever kept.
    """

    def __init__(
        self,
        downstream: str,
        whole: bool,
        limits: DeliveryLimits,
        spill: Spill | None = None,
    ) -> None:
        self.downstream = downstream
        self.hop: Hop | None = None
        self.done: dict[str, Positions] = {}
        self.ends: dict[str, StreamTuple] = {}
        self.reach: dict[str, int] = {}
        self._whole = whole
        self._limits = limits
        self._spill = spill
        self._shelves: dict[str, Shelf] = {}
        self._waiting: deque[Parcel] = deque()
        self._in_order = True
        self._flying: dict[str, int] = {}
        self._paused: dict[str, float] = {}

    def full(self, origin: str) -> bool:
        """Whether the bound for that stream is reached.

        Streams are bounded one by one, and what is older than anything kept may always come: else items that
        wait for an older one, or for one of another stream, could keep it out for ever.
        """
        shelf = self._shelves.get(origin)
        return shelf is not None and (self._crowded(shelf) or self.room_for_holes(origin) <= 0)

    def room(self, origin: str) -> int:
        """How many items of that stream may be put in one go, at least one, if their bytes are few."""
        shelf, limits = self._shelves.get(origin), self._limits
        items, size = (shelf.items, shelf.bytes) if shelf is not None else (0, 0)
        return max(1, limits.items - items) if limits.bytes - size > FEW_BYTES else 1

    def room_for_holes(self, origin: str) -> int:
        """How many more positions of that stream can be kept, payloads or not."""
        shelf = self._shelves.get(origin)
        return EMPTY_PER_ITEM * self._limits.items - (shelf.positions if shelf is not None else 0)

    def last(self, origin: str) -> int:
        """The highest position of that stream that is kept, 0 if there is none."""
        shelf = self._shelves.get(origin)
        return shelf.last if shelf is not None else 0

    @property
    def positions(self) -> int:
        return sum(shelf.positions for shelf in self._shelves.values())

    @property
    def streams(self) -> Iterable[str]:
        return self._shelves

    @property
    def waiting(self) -> int:
        """Items that no connection has been given."""
        return sum(len(parcel.items) for parcel in self._waiting if parcel.state is WAITING)

    def parcels(self) -> Iterator[Parcel]:
        for shelf in self._shelves.values():
            yield from shelf

    def put(self, items: list[StreamTuple]) -> list[Effect]:
        """Keep ``items``, a stretch of one stream, to be sent. What is kept or done already is not needed."""
        origin = items[0].origin
        shelf = self._shelves.get(origin)
        if shelf is None:
            shelf = self._shelves[origin] = Shelf(self._spill)
            self.done.setdefault(origin, Positions())
        first, last, done = items[0].tau, items[-1].tau, self.done[origin]
        self.reach[origin] = max(self.reach.get(origin, 0), last)
        if not (shelf.overlaps(first, last) or done.overlaps(first, last)):
            self._add(shelf, items)
        else:
            news = [i for i in items if i.tau not in done and not shelf.overlaps(i.tau, i.tau)]
            for stretch in stretches(news):
                self._add(shelf, stretch)
        return self._make_room(shelf)

    def put_of_source(self, items: list[StreamTuple]) -> list[Effect]:
        """Where nobody can be pushed back on, the oldest that was never sent makes room."""
        effects = self.put(items)
        shelf = self._shelves[items[0].origin]
        while self._crowded(shelf):
            unsent = next((p for p in shelf.in_memory() if p.state is WAITING and not p.to), None)
            if unsent is None:
                break
            effects.append(Drop(self.downstream, shelf.hollow(unsent), "source_buffer_full"))
        return effects

    def send(self, now: float) -> list[Effect]:
        """Give what waits to the replica chosen, as far as it has room in flight."""
        if not self._in_order:
            self._sort_waiting()
        hop, waiting = self.hop, self._waiting
        if hop is None or not waiting:
            return []
        batches: dict[str, list[StreamTuple]] = {}
        while waiting:
            parcel = waiting[0]
            if parcel.state is not WAITING:
                waiting.popleft()
                continue
            to, most = hop.to, len(parcel.items)
            if hop.shares:
                to, most = self._pick(hop, parcel.first, now), 1
            most = min(most, self._room(to, now))
            if most <= 0 and to not in parcel.holders:
                self._send_first_in_line(hop, now, batches)
                break
            waiting.popleft()
            if rest := self._dispatch(parcel, to, most, now, batches):
                waiting.appendleft(rest)
        return [Send(self.downstream, to, items, self._floors(items)) for to, items in batches.items()]

    def settle(self, origin: str, first: int, last: int) -> list[Range]:
        """``first`` … ``last`` is done: let go of it. Returns what of it was not known to be done before."""
        done = self.done.get(origin)
        if done is None:
            done = self.done[origin] = Positions()
        news = done.missing(first, last)
        if not news:
            return news
        if len(done) >= MOST_RANGES and not done.overlaps(first - 1, last + 1):
            return []  # to forget a fact is safe
        done.add(first, last)
        shelf = self._shelves.get(origin)
        if shelf:
            for begin, end in news:
                self._cut_at(shelf, begin, end)
                for parcel in shelf.take(begin, end):
                    self._forget(parcel)
        return news

    def taken(self, replica: str, origin: str, first: int, last: int) -> None:
        """``replica`` has taken these: they need no more room in flight."""
        shelf = self._shelves.get(origin)
        if not shelf:
            return
        self._cut_at(shelf, first, last)
        for parcel in shelf.look(first, last):
            if parcel.state is FLYING and parcel.to == replica:
                parcel.state = TAKEN
                parcel.holders += (replica,)
                self._flying[replica] -= len(parcel.items)

    def failed(self, replica: str, now: float) -> None:
        """The connection to ``replica`` broke, and it may have lost all it had."""
        self._paused[replica] = now + self._limits.retry
        for parcel in self.parcels():
            if replica in parcel.holders:
                parcel.holders = tuple(holder for holder in parcel.holders if holder != replica)
        self._rewind([parcel for parcel in self.parcels() if parcel.sent and parcel.to == replica])

    def steer(self, hop: Hop | None) -> None:
        """Send where ``hop`` says. What open windows need must follow."""
        self.hop = hop
        if hop is not None and self._whole:
            chosen = hop.replicas()
            self._rewind([parcel for parcel in self.parcels() if parcel.sent and parcel.to not in chosen])

    def overdue(self, now: float) -> None:
        """Rewind what went to a replica that the route has left since, and was not done there in time.

        What is with the replica in use is not sent again: as long as its connection lives, it has it.
        """
        if self.hop is None:
            return
        chosen, before = self.hop.replicas(), now - self._limits.unacknowledged
        self._rewind([p for p in self.parcels() if p.sent and p.at <= before and p.to not in chosen])

    def resumes_at(self, now: float) -> float:
        """When something that waits may be sent again to a replica whose connection had failed."""
        if self.hop is None or not self._waiting:
            return inf
        return min((at for to in self.hop.replicas() if (at := self._paused.get(to, 0.0)) > now), default=inf)

    def relieve(self) -> None:
        """Put away what there was no room for in the spill when it came."""
        if self._limits.overflow is Overflow.SPILL:
            for shelf in self._shelves.values():
                self._make_room(shelf)

    def _add(self, shelf: Shelf, items: list[StreamTuple]) -> None:
        parcel = Parcel(items, weight_of(items))
        shelf.add(parcel)
        in_order = not self._waiting or _age(self._waiting[-1]) <= _age(parcel)
        self._waiting.append(parcel)
        if not in_order:
            self._sort_waiting()
        if items[-1].last:
            self.ends[items[-1].origin] = items[-1]

    def _dispatch(
        self, parcel: Parcel, to: str, most: int, now: float, batches: dict[str, list[StreamTuple]]
    ) -> Parcel | None:
        """Send up to ``most`` items of what waits, unless ``to`` has it already; returns the rest."""
        if to in parcel.holders:
            parcel.state, parcel.to, parcel.at = TAKEN, to, now
            return None
        rest, shelf = None, self._shelf_of(parcel)
        if most < len(parcel.items):
            rest = shelf.cut(parcel, most)
        parcel.state, parcel.to, parcel.at = FLYING, to, now
        self._flying[to] = self._flying.get(to, 0) + len(parcel.items)
        batches.setdefault(to, []).extend(shelf.whole(parcel))
        return rest

    def _send_first_in_line(self, hop: Hop, now: float, batches: dict[str, list[StreamTuple]]) -> None:
        """Send the oldest item of each stream even without room, if nothing older of it is in flight.

        It may be what all the others wait for.
        """
        for shelf in self._shelves.values():
            for parcel in shelf:
                to = hop.pick(parcel.first)
                if parcel.state is FLYING and parcel.to == to:
                    break
                if parcel.state is WAITING:
                    if not self._is_paused(to, now) and (rest := self._dispatch(parcel, to, 1, now, batches)):
                        self._waiting.append(rest)
                        self._sort_waiting()
                    break

    def _cut_at(self, shelf: Shelf, first: int, last: int) -> None:
        """Cut so that every parcel lies either within or without ``first`` … ``last``."""
        for parcel in shelf.look(first, last):
            rests = []
            if parcel.last > last:
                rests.append(shelf.cut(parcel, bisect_right(parcel.items, last, key=_tau)))
            if parcel.first < first:
                rests.append(shelf.cut(parcel, bisect_left(parcel.items, first, key=_tau)))
            if rests and parcel.state is WAITING:
                self._waiting += rests
                self._in_order = False  # until something is sent: there may be many cuts

    def _rewind(self, parcels: list[Parcel]) -> None:
        if not parcels:
            return
        for parcel in parcels:
            if parcel.state is FLYING:
                self._flying[parcel.to] -= len(parcel.items)
            if parcel.state is not WAITING:
                self._waiting.append(parcel)
            parcel.state = WAITING
        self._sort_waiting()

    def _sort_waiting(self) -> None:
        """The oldest first; a parcel that was sent and rewound may stand there twice."""
        self._in_order = True
        waiting = {id(parcel): parcel for parcel in self._waiting if parcel.state is WAITING}
        self._waiting = deque(sorted(waiting.values(), key=_age))

    def _forget(self, parcel: Parcel) -> None:
        """Account for a parcel that has left its shelf."""
        if parcel.state is FLYING:
            self._flying[parcel.to] -= len(parcel.items)
        parcel.state = GONE

    def _shelf_of(self, parcel: Parcel) -> Shelf:
        return self._shelves[parcel.items[0].origin]

    def _is_paused(self, to: str, now: float) -> bool:
        return self._paused.get(to, 0.0) > now

    def _room(self, to: str, now: float) -> int:
        return 0 if self._is_paused(to, now) else self._limits.in_flight - self._flying.get(to, 0)

    def _pick(self, hop: Hop, tau: int, now: float) -> str:
        """The replica whose turn it is, or the first of the others that has room."""
        chosen = hop.pick(tau)
        return next((to for to in (chosen, *hop.replicas()) if self._room(to, now) > 0), chosen)

    def _floors(self, items: list[StreamTuple]) -> dict[str, int]:
        return {origin: self.done[origin].floor for origin in {item.origin: None for item in items}}

    # When there is no room.

    def _crowded(self, shelf: Shelf) -> bool:
        return shelf.items >= self._limits.items or shelf.bytes >= self._limits.bytes

    def _make_room(self, shelf: Shelf) -> list[Effect]:
        overflow, effects = self._limits.overflow, list[Effect]()
        while overflow is not Overflow.BLOCK and self._crowded(shelf):
            oldest = next(shelf.in_memory())
            if overflow is Overflow.DROP_OLDEST:
                effects.append(Drop(self.downstream, shelf.hollow(oldest), "retention_full"))
            elif not shelf.put_away(oldest):
                break
        return effects


def _age(parcel: Parcel) -> tuple[int, int]:
    return parcel.items[0].born_ns, parcel.first


def _tau(item: StreamTuple) -> int:
    return item.tau
