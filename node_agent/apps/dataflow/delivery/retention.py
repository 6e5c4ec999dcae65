"""What a replica keeps of its output for one downstream operator, until it is done there.

Parcels wait, are in flight to a replica, or were taken by it. A rewind makes them wait again; the oldest are
sent first.
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
from node_agent.apps.dataflow.delivery.spill import Spill
from node_agent.apps.dataflow.delivery.stream_store import Parcel, State, StreamStore
from node_agent.apps.dataflow.model.tuples import StreamTuple, weight_of
from node_agent.apps.dataflow.switching.route import Hop

WAITING, IN_FLIGHT, TAKEN, GONE = State
FEW_BYTES = 256 * 1024
"""What is put at once has at most this many bytes, or is one item."""


class Retention:
    """``whole``: the operator needs several items for a result, so all of them must go to the same replica.

    ``done``: by stream, all that is known to be done. ``ends``: the last items of streams that ended.
    ``reach``: by stream, the highest position that was ever kept.
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
        self._stores: dict[str, StreamStore] = {}
        self._waiting: deque[Parcel] = deque()
        self._in_order = True
        self._in_flight: dict[str, int] = {}
        self._paused: dict[str, float] = {}

    def full(self, origin: str) -> bool:
        """Whether the limit for that stream is reached.

        Each stream has its own limit, and items older than everything kept are always accepted: otherwise
        items that wait for an older one, or for one of another stream, could keep it out for ever.
        """
        store = self._stores.get(origin)
        return store is not None and (self._crowded(store) or self.room_for_holes(origin) <= 0)

    def room(self, origin: str) -> int:
        """Returns how many items of that stream may be put at once, at least one, if their bytes are few."""
        store, limits = self._stores.get(origin), self._limits
        items, size = (store.items, store.bytes) if store is not None else (0, 0)
        return max(1, limits.items - items) if limits.bytes - size > FEW_BYTES else 1

    def room_for_holes(self, origin: str) -> int:
        """Returns how many more positions of that stream can be kept, with or without payload."""
        store = self._stores.get(origin)
        return EMPTY_PER_ITEM * self._limits.items - (store.positions if store is not None else 0)

    def last(self, origin: str) -> int:
        """Returns the highest position of that stream that is kept; 0 if there is none."""
        store = self._stores.get(origin)
        return store.last if store is not None else 0

    @property
    def positions(self) -> int:
        return sum(store.positions for store in self._stores.values())

    @property
    def streams(self) -> Iterable[str]:
        return self._stores

    @property
    def waiting(self) -> int:
        """How many items were not yet given to a connection."""
        return sum(len(parcel.items) for parcel in self._waiting if parcel.state is WAITING)

    def in_flight(self, replica: str) -> int:
        """Returns how many items were sent to ``replica`` that it has not taken yet."""
        return self._in_flight.get(replica, 0)

    def kept(self, origin: str) -> int:
        """Returns how many items of that stream are kept, with their payload."""
        store = self._stores.get(origin)
        return store.items if store is not None else 0

    def parcels(self) -> Iterator[Parcel]:
        for store in self._stores.values():
            yield from store

    def put(self, items: list[StreamTuple]) -> list[Effect]:
        """Keeps ``items``, neighbours of one stream, to be sent. Ignores what is kept or done already."""
        origin = items[0].origin
        store = self._stores.get(origin)
        if store is None:
            store = self._stores[origin] = StreamStore(self._spill)
            self.done.setdefault(origin, Positions())
        first, last, done = items[0].tau, items[-1].tau, self.done[origin]
        self.reach[origin] = max(self.reach.get(origin, 0), last)
        if not (store.overlaps(first, last) or done.overlaps(first, last)):
            self._add(store, items)
        else:
            news = [i for i in items if i.tau not in done and not store.overlaps(i.tau, i.tau)]
            for stretch in stretches(news):
                self._add(store, stretch)
        return self._make_room(store)

    def put_of_source(self, items: list[StreamTuple]) -> list[Effect]:
        """Like ``put``, for a source that cannot be pushed back: drops its oldest unsent items."""
        effects = self.put(items)
        store = self._stores[items[0].origin]
        while self._crowded(store):
            unsent = next((p for p in store.in_memory() if p.state is WAITING and not p.to), None)
            if unsent is None:
                break
            effects.append(Drop(self.downstream, store.drop_payload(unsent), "source_buffer_full"))
        return effects

    def send(self, now: float) -> list[Effect]:
        """Sends waiting items to the chosen replica, as far as its limit of items in flight allows."""
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
        """Marks ``first`` … ``last`` as done and removes it. Returns the parts that were not known to be
        done.
        """
        done = self.done.get(origin)
        if done is None:
            done = self.done[origin] = Positions()
        news = done.missing(first, last)
        if not news:
            return news
        if len(done) >= MOST_RANGES and not done.overlaps(first - 1, last + 1):
            return []  # forgetting what is done is safe: it will be reported again
        done.add(first, last)
        store = self._stores.get(origin)
        if store:
            for begin, end in news:
                self._cut_at(store, begin, end)
                for parcel in store.remove(begin, end):
                    self._forget(parcel)
        return news

    def taken(self, replica: str, origin: str, first: int, last: int) -> None:
        """``replica`` has taken these positions: they no longer count as in flight."""
        store = self._stores.get(origin)
        if not store:
            return
        self._cut_at(store, first, last)
        for parcel in store.overlapping(first, last):
            if parcel.state is IN_FLIGHT and parcel.to == replica:
                parcel.state = TAKEN
                parcel.holders += (replica,)
                self._in_flight[replica] -= len(parcel.items)

    def failed(self, replica: str, now: float) -> None:
        """The connection to ``replica`` broke: rewinds everything sent to it, because it may be lost."""
        self._paused[replica] = now + self._limits.retry
        for parcel in self.parcels():
            if replica in parcel.holders:
                parcel.holders = tuple(holder for holder in parcel.holders if holder != replica)
        self._rewind([parcel for parcel in self.parcels() if parcel.sent and parcel.to == replica])

    def steer(self, hop: Hop | None) -> None:
        """Sends where ``hop`` says from now on. If ``whole``, also rewinds what went to other replicas."""
        self.hop = hop
        if hop is not None and self._whole:
            chosen = hop.replicas()
            self._rewind([parcel for parcel in self.parcels() if parcel.sent and parcel.to not in chosen])

    def overdue(self, now: float) -> None:
        """Rewinds what went to a replica that is no longer chosen, and was not done there in time.

        What the replica in use has is not sent again: while its connection lives, it keeps what it was sent.
        """
        if self.hop is None:
            return
        chosen, before = self.hop.replicas(), now - self._limits.unacknowledged
        self._rewind([p for p in self.parcels() if p.sent and p.at <= before and p.to not in chosen])

    def resumes_at(self, now: float) -> float:
        """Returns when waiting items may be sent again to a replica whose connection had failed."""
        if self.hop is None or not self._waiting:
            return inf
        return min((at for to in self.hop.replicas() if (at := self._paused.get(to, 0.0)) > now), default=inf)

    def spill_overflow(self) -> None:
        """Spills what there was no room for in the spill when it was put."""
        if self._limits.overflow is Overflow.SPILL:
            for store in self._stores.values():
                self._make_room(store)

    def _add(self, store: StreamStore, items: list[StreamTuple]) -> None:
        parcel = Parcel(items, weight_of(items))
        store.add(parcel)
        in_order = not self._waiting or _age(self._waiting[-1]) <= _age(parcel)
        self._waiting.append(parcel)
        if not in_order:
            self._sort_waiting()
        if items[-1].last:
            self.ends[items[-1].origin] = items[-1]

    def _dispatch(
        self, parcel: Parcel, to: str, most: int, now: float, batches: dict[str, list[StreamTuple]]
    ) -> Parcel | None:
        """Sends up to ``most`` items of ``parcel``, unless ``to`` has them already. Returns the rest."""
        if to in parcel.holders:
            parcel.state, parcel.to, parcel.at = TAKEN, to, now
            return None
        rest, store = None, self._store_of(parcel)
        if most < len(parcel.items):
            rest = store.cut(parcel, most)
        parcel.state, parcel.to, parcel.at = IN_FLIGHT, to, now
        self._in_flight[to] = self._in_flight.get(to, 0) + len(parcel.items)
        batches.setdefault(to, []).extend(store.items_of(parcel))
        return rest

    def _send_first_in_line(self, hop: Hop, now: float, batches: dict[str, list[StreamTuple]]) -> None:
        """Sends the oldest item of each stream even without room, if nothing older of the stream is in
        flight.

        All other items may be waiting for this one.
        """
        for store in self._stores.values():
            for parcel in store:
                to = hop.pick(parcel.first)
                if parcel.state is IN_FLIGHT and parcel.to == to:
                    break
                if parcel.state is WAITING:
                    if not self._is_paused(to, now) and (rest := self._dispatch(parcel, to, 1, now, batches)):
                        self._waiting.append(rest)
                        self._sort_waiting()
                    break

    def _cut_at(self, store: StreamStore, first: int, last: int) -> None:
        """Cuts parcels so that each lies either within ``first`` … ``last`` or outside."""
        for parcel in store.overlapping(first, last):
            rests = []
            if parcel.last > last:
                rests.append(store.cut(parcel, bisect_right(parcel.items, last, key=_tau)))
            if parcel.first < first:
                rests.append(store.cut(parcel, bisect_left(parcel.items, first, key=_tau)))
            if rests and parcel.state is WAITING:
                self._waiting += rests
                self._in_order = False  # sorted only before the next send: there may be many cuts

    def _rewind(self, parcels: list[Parcel]) -> None:
        if not parcels:
            return
        for parcel in parcels:
            if parcel.state is IN_FLIGHT:
                self._in_flight[parcel.to] -= len(parcel.items)
            if parcel.state is not WAITING:
                self._waiting.append(parcel)
            parcel.state = WAITING
        self._sort_waiting()

    def _sort_waiting(self) -> None:
        """Sorts the waiting parcels, the oldest first, and removes duplicates: a rewound parcel may be listed
        twice.
        """
        self._in_order = True
        waiting = {id(parcel): parcel for parcel in self._waiting if parcel.state is WAITING}
        self._waiting = deque(sorted(waiting.values(), key=_age))

    def _forget(self, parcel: Parcel) -> None:
        """Corrects the counts after a parcel was removed from its store."""
        if parcel.state is IN_FLIGHT:
            self._in_flight[parcel.to] -= len(parcel.items)
        parcel.state = GONE

    def _store_of(self, parcel: Parcel) -> StreamStore:
        return self._stores[parcel.items[0].origin]

    def _is_paused(self, to: str, now: float) -> bool:
        return self._paused.get(to, 0.0) > now

    def _room(self, to: str, now: float) -> int:
        return 0 if self._is_paused(to, now) else self._limits.in_flight - self._in_flight.get(to, 0)

    def _pick(self, hop: Hop, tau: int, now: float) -> str:
        """Returns the replica whose turn it is, or the first other one that has room."""
        chosen = hop.pick(tau)
        return next((to for to in (chosen, *hop.replicas()) if self._room(to, now) > 0), chosen)

    def _floors(self, items: list[StreamTuple]) -> dict[str, int]:
        return {origin: self.done[origin].floor for origin in {item.origin: None for item in items}}

    # Overflow.

    def _crowded(self, store: StreamStore) -> bool:
        return store.items >= self._limits.items or store.bytes >= self._limits.bytes

    def _make_room(self, store: StreamStore) -> list[Effect]:
        overflow, effects = self._limits.overflow, list[Effect]()
        while overflow is not Overflow.BLOCK and self._crowded(store):
            oldest = next(store.in_memory())
            if overflow is Overflow.DROP_OLDEST:
                effects.append(Drop(self.downstream, store.drop_payload(oldest), "retention_full"))
            elif not store.move_to_spill(oldest):
                break
        return effects


def _age(parcel: Parcel) -> tuple[int, int]:
    return parcel.items[0].born_ns, parcel.first


def _tau(item: StreamTuple) -> int:
    return item.tau
