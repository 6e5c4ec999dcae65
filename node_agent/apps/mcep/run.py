"""One run of a query's operator graph over brokers: what one of them does for it.

Each broker streams the events of its area and runs the operators that are placed on it. The query's home
also moves the interest, and gets the results. ``Ordered``, ``Answered`` and ``Streamed`` name the run.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from node_agent.apps.mcep.channel import ChannelId, Marker, Message
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.graph import CONSUMER, Stream, fan_out
from node_agent.apps.mcep.interest import Condition, CountEvents
from node_agent.apps.mcep.messages import Answered, Ordered, Streamed
from node_agent.apps.mcep.model import Event, Query
from node_agent.apps.mcep.moving.operators import MovingOperators
from node_agent.apps.mcep.site import Site
from node_agent.apps.mcep.switching import Held, Hold, Order, Reconfigurator
from node_agent.apps.mcep.wiring import delivery, execution, range_query


class Done(NamedTuple):
    """What a broker has done, and what waits. ``streamed``: events sent to operators; ``skipped``: those that
    suppression left out; ``processed``, ``reused``: selections of operators; ``waiting``: messages before
    operators and the consumer."""

    streamed: int = 0
    skipped: int = 0
    processed: int = 0
    reused: int = 0
    waiting: int = 0

    @classmethod
    def total(cls, each: Iterable[Self]) -> Self:
        return cls(*(sum(numbers) for numbers in zip(*each, strict=True)))


class Run:
    """``query``: what runs; it can differ from the deployed one in its history and policy."""

    def __init__(self, name: str, query: Query, deployed: Deployed, site: Site) -> None:
        self.name = name
        self._query, self._deployed, self._site = query, deployed, site
        self._ranges = {each.name: range_query(query, each, site.storage) for each in query.graph.sources}
        for ranges in self._ranges.values():
            ranges.progress(site.arrived())
        self.moving: MovingOperators | None = None
        if deployed.migration is not None:
            self.moving = MovingOperators(name, deployed, site, self._consumed)
        hosted = [] if self.moving else [each for each, at in deployed.hosts.items() if at == site.name]
        self._operators = {each: self._operator(each) for each in hosted}
        self._streamed = 0

    def _operator(self, name: str) -> Execution:
        sharing = self._site.sharing
        offering = None if sharing is None else sharing.operator(self._query, name)
        return execution(self._query, name, self._site.servers) if offering is None else offering

    def done(self) -> Done:
        operators = self._operators.values()
        return Done(
            self._streamed,
            sum(each.skipped for each in self._ranges.values()),
            sum(each.counts.processed for each in operators) + (self.moving.processed if self.moving else 0),
            sum(each.counts.reused for each in operators),
            sum(each.waiting for each in operators) + (self.moving.waiting if self.moving else 0),
        )

    def needed_since(self) -> float:
        return min(each.needed_since() for each in self._ranges.values())

    @property
    def is_over(self) -> bool:
        """Whether nothing of it can come any more."""
        machines = self._operators.values()
        return all(each.ended for each in self._ranges.values()) and all(each.ended for each in machines)

    def ordered(self, sender: str, order: Order) -> None:
        if sender != self._deployed.home:
            self._site.refused += 1
        elif isinstance(order, Hold):
            position = max(each.hold() for each in self._ranges.values())
            self._site.send(sender, Answered(self.name, Held(order.epoch, position)))
        else:
            for source, each in self._ranges.items():
                self._stream(source, each.switch(order.marker))

    def answered(self, sender: str, answer: Held) -> None:
        """Only the home is answered."""
        self._site.refused += 1

    def progress(self, arrived: float) -> None:
        for source, each in self._ranges.items():
            self._stream(source, each.progress(arrived))

    @property
    def hurries(self) -> bool:
        """Whether it goes on without clients and brokers that say nothing (best effort)."""
        return not self._deployed.query.policy.is_strict

    def look(self, patience: int) -> None:
        """Goes on without brokers that sent nothing for more than ``patience`` looks."""
        for name, each in self._operators.items():
            self.sent_by(name, each.look(patience))

    def _stream(self, source: str, messages: Iterable[Message]) -> None:
        channel = ChannelId(source, self._site.name)
        for stream, message in fan_out(self._query.graph.outputs[source], messages):
            self._streamed += isinstance(message, Event)
            self._to(stream.successor, channel, message)

    def _to(self, successor: str, channel: ChannelId, message: Message) -> None:
        if self.moving is not None and successor != CONSUMER:
            self.moving.emit(successor, channel, message)
            return
        self._site.send(self._deployed.host(successor), Streamed(self.name, successor, channel, message))

    def streamed(self, sender: str, successor: str, channel: ChannelId, message: Message) -> None:
        if sender != (channel.origin or self._deployed.hosts.get(channel.producer)):
            self._site.refused += 1
        elif successor in self._operators:
            self.sent_by(successor, self._operators[successor].receive(channel, message))
        else:
            self._consumed(successor, channel, message)

    def sent_by(self, operator: str, sent: Iterable[tuple[Stream, Message]]) -> None:
        """What an operator sends goes to its successors."""
        for stream, each in sent:
            self._to(stream.successor, ChannelId(operator), each)

    def _consumed(self, successor: str, channel: ChannelId, message: Message) -> None:
        self._site.refused += 1


class HomeRun(Run):
    """The part of the query's home. ``condition``: when the interest of this run switches. ``results``: gets
    what comes, and up to which time all results are there."""

    def __init__(
        self,
        name: str,
        query: Query,
        deployed: Deployed,
        site: Site,
        results: Callable[[list[Delivered], float], None],
        condition: Condition | None = None,
        count: CountEvents | None = None,
    ) -> None:
        super().__init__(name, query, deployed, site)
        self._results = results
        self._delivery = delivery(query, site.servers)
        self._reconfigurator = (
            Reconfigurator(query, site.servers, condition, count)
            if count is not None
            else Reconfigurator(query, site.servers, condition)
        )

    @property
    def markers(self) -> tuple[Marker, ...]:
        return tuple(self._reconfigurator.markers)

    def done(self) -> Done:
        return Done.total([super().done(), Done(waiting=self._delivery.gate.waiting)])

    @property
    def is_switching(self) -> bool:
        return self._reconfigurator.is_switching

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The brokers that the present switch waits for."""
        return self._reconfigurator.unanswered

    @property
    def is_over(self) -> bool:
        return self._delivery.ended and super().is_over

    def locate(self, place: Point | None, t: float) -> None:
        """The interest is around a place from a time on; None: the run ends."""
        if self.moving is not None and place is not None:
            self.moving.located(place, t)
        moves = self._reconfigurator
        self._order_all(moves.end(t) if place is None else moves.located(place, t))

    def _order_all(self, orders: Iterable[tuple[str, Order]]) -> None:
        for server, order in orders:
            self._site.send(server, Ordered(self.name, order))

    def answered(self, sender: str, answer: Held) -> None:
        if sender not in self._site.servers:
            self._site.refused += 1
        else:
            self._order_all(self._reconfigurator.held(sender, answer))

    def look(self, patience: int) -> None:
        super().look(patience)
        if found := self._delivery.look(patience):
            self._results(found, self._delivery.complete_to)

    def _consumed(self, successor: str, channel: ChannelId, message: Message) -> None:
        if successor != CONSUMER:
            self._site.refused += 1
            return
        found = self._delivery.receive(channel, message)
        self._results(found, self._delivery.complete_to)
