"""Switches of one moving graph on one server, with a choice of how far back its streams begin (Fig. 3.10)."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from node_agent.apps.mcep.channel import ChannelId, Marker, Message
from node_agent.apps.mcep.collect import Observed, collect_points, points_of
from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.graph import CONSUMER, fan_out
from node_agent.apps.mcep.model import Event, Query
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.wiring import delivery, execution, range_query

Way = Literal["basic", "avg", "none"]
"""All that restriction windows can reach; what windows need by mean gaps between events; no history."""


class Points:
    """``results``: times and facts of what was delivered. ``historical``: events from before their epoch's
    start that were streamed. Both without the first epoch, which begins the same in all ways."""

    def __init__(self, query: Query, way: Way) -> None:
        self.results: Counter[tuple[int, float, str]] = Counter()
        self.historical = 0
        self._query, self._way = query, way
        self._storage = Storage(query.look_back + 10.0)
        graph = query.graph
        self._ranges = {each.name: range_query(query, each, self._storage) for each in graph.sources}
        self._operators = {each.name: execution(query, each.name, ("",)) for each in graph.operators}
        self._consumer = delivery(query, ("",))
        self._marker: Marker | None = None
        self._everything = frozenset(each.name for each in graph.sources)

    def see(self, events: Sequence[Event], upto: float) -> None:
        for event in events:
            self._storage.add(event)
        for name, ranges in self._ranges.items():
            self._stream(name, ranges.progress(upto))
        self._storage.expire(upto)

    def switch(self, region: Region | None, t: float) -> None:
        epoch = self._marker.epoch + 1 if self._marker else 1
        self._marker = Marker(t, epoch, region, self._points(region, t, epoch), self._everything)
        for name, ranges in self._ranges.items():
            self._stream(name, ranges.switch(self._marker))

    def _points(self, region: Region | None, t: float, epoch: int) -> dict[str, float]:
        query = self._query
        if self._way == "basic" or region is None:
            return query.graph.points(t, query.history)
        if self._way == "none":
            return dict.fromkeys(query.graph.order, t)
        observed = {name: each.observed() for name, each in self._operators.items()}
        known: dict[str, Observed] = observed if self._marker else {}
        found = collect_points(
            query.graph, epoch, t, query.history, self._everything, "time_span", known, aware=False
        )
        latest: Callable[[str, float, int], list[float]] = lambda source, before, most: []  # noqa: E731
        return points_of(query.graph, found, t, query.history, latest)

    def _stream(self, producer: str, messages: Sequence[Message]) -> None:
        for stream, message in fan_out(self._query.graph.outputs[producer], messages):
            if isinstance(message, Event) and self._marker is not None and self._marker.epoch > 1:
                self.historical += message.t < self._marker.t and message.epoch == self._marker.epoch
            self._send(producer, stream.successor, message)

    def _send(self, producer: str, successor: str, message: Message) -> None:
        if successor == CONSUMER:
            for epoch, event, _ in self._consumer.receive(ChannelId(producer), message):
                if epoch > 1:
                    self.results[epoch, event.t, str(event.attributes)] += 1
            return
        for stream, each in self._operators[successor].receive(ChannelId(producer), message):
            self._send(successor, stream.successor, each)
