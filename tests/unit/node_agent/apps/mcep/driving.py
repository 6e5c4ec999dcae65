"""Drives the machines of one operator or one query by hand: messages in, results out, without delays."""

from collections.abc import Callable, Iterable, Sequence

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Inlet, Log, Marker, Message
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.geometry import Box, Point, Region
from node_agent.apps.mcep.graph import CONSUMER, OperatorGraph, Source, Stream, fan_out
from node_agent.apps.mcep.model import AtomicId, Event, Query, Value, atomic
from node_agent.apps.mcep.range_query import RangeQuery
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.switching import basic_plan
from node_agent.apps.mcep.windows import Operator, Output, Selection, Step
from node_agent.apps.mcep.wiring import delivery, execution, range_query

EVERYWHERE = Box(-1e6, -1e6, 1e6, 1e6)


class Recorded:
    """A correlation function that remembers what it was given, as names of atomic events."""

    def __init__(self, make: Callable[[Selection], Iterable[Output]] | None = None) -> None:
        self.seen: list[set[str]] = []
        self._make = make or (lambda selection: (Output("made", {"of": len(selection.events)}),))

    def __call__(self, selection: Selection) -> Step:
        self.seen.append({each.source for each in selection.events})
        return Step(tuple(self._make(selection)))


def seen(name: str, type: str, t: float, x: float = 0.0, **attributes: Value) -> Event:
    """An atomic event with a name of its own."""
    return atomic(type, t, Point(x, 0.0), 0, name, attributes)


def one_operator(operator: Operator) -> OperatorGraph:
    sources = tuple(Source(name, name) for name in operator.streams)
    streams = (*(Stream(each.name, operator.name) for each in sources), Stream(operator.name))
    return OperatorGraph(sources, (operator,), streams)


def all_at_once(operator: Operator, events: Sequence[Event], begin: float, end: float) -> list[Event]:
    """What an operator makes of one epoch whose results begin and end so; streams are named after types."""
    graph = one_operator(operator)
    inlets = {ChannelId(name): Inlet({name}) for name in operator.streams}
    machine = Execution(graph, operator.name, inlets)
    points = {operator.name: begin, **dict.fromkeys(operator.streams, begin - operator.restriction.length)}
    everything = frozenset(operator.streams)
    made: list[Event] = []

    def give(channel: str, message: Message) -> None:
        sent = machine.receive(ChannelId(channel), message)
        made.extend(message for _, message in sent if isinstance(message, Event))

    for name in operator.streams:
        give(name, Marker(begin, 1, EVERYWHERE, points, everything))
    for event in sorted(events, key=lambda each: each.key):
        if event.t >= points[event.type]:
            give(event.type, event._replace(epoch=1))
    for name in operator.streams:
        give(name, Heartbeat(end))
        give(name, Marker(end, 2, None, points, everything))
    return made


class Machines:
    """All machines of a query on one server, over channels without delay."""

    def __init__(self, query: Query, ttl: float = 1e6, *, partial: bool = False) -> None:
        self.query, self._servers = query, ("",)
        self.storage = Storage(ttl)
        self.ranges: dict[str, RangeQuery] = {
            each.name: range_query(query, each, self.storage) for each in query.graph.sources
        }
        self.operators = {
            each.name: execution(query, each.name, self._servers, partial=partial)
            for each in query.graph.operators
        }
        self.consumer = delivery(query, self._servers, partial=partial)
        self.delivered: list[Delivered] = []
        self.sent: list[tuple[str, str, Message]] = []
        """Producer, successor, message."""
        self._epoch = 0

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            self.storage.add(event)

    def arrive(self, t: float) -> None:
        """All events before a time have been seen."""
        for name, ranges in self.ranges.items():
            self._stream(name, ranges.progress(t))

    def switch(
        self, region: Region | None, t: float, touched: frozenset[str] | None = None,
        points: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        self._epoch += 1
        basic, everything = basic_plan(self.query)(None, EVERYWHERE, t, self._epoch)
        chosen = everything if touched is None else touched
        marker = Marker(t, self._epoch, region, {**basic, **(points or {})}, chosen)
        for name, ranges in self.ranges.items():
            self._stream(name, ranges.switch(marker))

    def results(self, epoch: int) -> list[tuple[float, frozenset[AtomicId]]]:
        return [(each.event.t, each.event.provenance) for each in self.delivered if each.epoch == epoch]

    def events_sent(self, producer: str) -> list[Event]:
        return [m for name, _, m in self.sent if name == producer and isinstance(m, Event)]

    def logs_sent(self, producer: str) -> list[Log]:
        return [m for name, _, m in self.sent if name == producer and isinstance(m, Log)]

    def _stream(self, producer: str, messages: Iterable[Message]) -> None:
        for stream, message in fan_out(self.query.graph.outputs[producer], messages):
            self._send(producer, stream.successor, message)

    def _send(self, producer: str, successor: str, message: Message) -> None:
        self.sent.append((producer, successor, message))
        channel = ChannelId(producer)
        if successor == CONSUMER:
            self.delivered += self.consumer.receive(channel, message)
            return
        for stream, each in self.operators[successor].receive(channel, message):
            self._send(successor, stream.successor, each)
