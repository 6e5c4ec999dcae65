"""Assembles units of one item each. The output keeps the position of the item."""

from collections import deque
from collections.abc import Iterable, Sequence

from node_agent.apps.dataflow.model.tuples import Position, StreamTuple
from node_agent.apps.dataflow.windows.units import Gaps, HandedOver, Unit, Units
from node_agent.model.intervals import Intervals


class EachAssembler:
    """With ``gaps`` (best effort) it remembers nothing: items that arrive twice are processed twice."""

    def __init__(self, gaps: Gaps | None = None) -> None:
        self._remembers = gaps is None
        self._seen: dict[tuple[str, str], Intervals] = {}
        # Only a sink can get one stream over several inputs. Its units are done in the order they are made.
        self._open: dict[tuple[str, int], deque[str]] = {}
        self._released: list[Position] = []

    def add(self, upstream: str, item: StreamTuple) -> list[Unit]:
        key = (item.origin, item.tau)
        if self._remembers:
            seen = self._stream(upstream, item.origin)
            if item.tau in seen:
                if upstream not in self._open.get(key, ()):
                    self._released.append(Position(upstream, *key))
                return []
            seen.add(item.tau)
        self._open.setdefault(key, deque()).append(upstream)
        return [unit_of(upstream, item)]

    def done(self, origin: str, tau: int) -> None:
        upstreams = self._open.get((origin, tau))
        if upstreams:
            self._released.append(Position(upstreams.popleft(), origin, tau))
            if not upstreams:
                del self._open[origin, tau]

    def settled(self, upstream: str, origin: str, until: int) -> None:
        self._stream(upstream, origin).add(1, until)

    def floor(self) -> int:
        return 0

    def released(self) -> list[Position]:
        released, self._released = self._released, []
        return released

    def unused(self) -> list[StreamTuple]:
        return []

    def holding(self) -> list[tuple[str, StreamTuple]]:
        return []

    def hand_over(self) -> HandedOver:
        return HandedOver([], [])

    def made_elsewhere(self, upstream: str, items: Sequence[StreamTuple], made: Iterable[Units]) -> None:
        pass

    def held(self, upstream: str, origin: str) -> int:
        return sum(name == origin and upstream in ups for (name, _), ups in self._open.items())

    def _stream(self, upstream: str, origin: str) -> Intervals:
        return self._seen.setdefault((upstream, origin), Intervals())


def unit_of(upstream: str, item: StreamTuple) -> Unit:
    inputs = {} if item.last else {upstream: (item,)}
    return Unit(item.origin, item.tau, item.prev, item.born_ns, item.prev_born_ns, inputs, item.last)
