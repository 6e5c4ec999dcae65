"""The operator graph of a query as a checked value, and how far back each of its streams must begin.

graph = OperatorGraph(
    sources=(Source("speed", "speed"), Source("lane", "lane_change")),
    operators=(slow, accident),
    streams=(
        Stream("speed", "slow"), Stream("slow", "accident"), Stream("lane", "accident"), Stream("accident"),
    ),
)
check_graph(graph)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Literal, TypeVar

from node_agent.apps.mcep.model import Event, Value
from node_agent.apps.mcep.windows import Operator

CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Source:
    """All atomic events of a ``type`` that lie in the processing interest."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Only events with such an attribute."""

    attribute: str
    relation: Literal["<", "<=", "==", "!=", ">=", ">"]
    value: Value

    def accepts(self, event: Event) -> bool:
        """An event without the attribute, or with one of another kind, is not accepted."""
        found = event.attributes.get(self.attribute)
        if self.relation == "==":
            return found == self.value
        if self.relation == "!=":
            return found is not None and found != self.value
        if isinstance(found, str) or isinstance(self.value, str) or found is None:
            return False
        match self.relation:
            case "<":
                return found < self.value
            case "<=":
                return found <= self.value
            case ">=":
                return found >= self.value
            case ">":
                return found > self.value


@dataclass(frozen=True, slots=True)
class Stream:
    """From a producer to an operator or to the consumer; ``only``: restrictions that the producer
    applies."""

    producer: str
    successor: str = CONSUMER
    only: tuple[Keep, ...] = ()

    def carries(self, message: object) -> bool:
        """Restrictions are on events; all else passes."""
        return not isinstance(message, Event) or all(each.accepts(message) for each in self.only)


@dataclass(frozen=True)
class OperatorGraph:
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...]

    @cached_property
    def by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def outputs(self) -> dict[str, tuple[Stream, ...]]:
        """Streams by producer."""
        found: dict[str, list[Stream]] = {}
        for stream in self.streams:
            found.setdefault(stream.producer, []).append(stream)
        return {name: tuple(streams) for name, streams in found.items()}

    @cached_property
    def inputs(self) -> dict[str, tuple[Stream, ...]]:
        """Streams by successor; those of ``CONSUMER`` come from the roots."""
        found: dict[str, list[Stream]] = {}
        for stream in self.streams:
            found.setdefault(stream.successor, []).append(stream)
        return {name: tuple(streams) for name, streams in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Names of sources and operators, each after its producers. Raises ``CycleError``."""
        needs: dict[str, list[str]] = {source.name: [] for source in self.sources}
        for operator in self.operators:
            needs[operator.name] = [stream.producer for stream in self.inputs.get(operator.name, ())]
        return tuple(TopologicalSorter(needs).static_order())

    @cached_property
    def below(self) -> dict[str, frozenset[str]]:
        """Sources that reach each node; a source reaches itself."""
        found = {source.name: frozenset({source.name}) for source in self.sources}
        for name in self.order:
            if name not in found:
                found[name] = frozenset().union(*(found[each.producer] for each in self.inputs[name]))
        found[CONSUMER] = frozenset().union(*(found[each.producer] for each in self.inputs[CONSUMER]))
        return found

    @cached_property
    def _additional(self) -> dict[str, float]:
        found: dict[str, float] = {CONSUMER: 0.0}
        for name in reversed(self.order):
            found[name] = max(
                found[each.successor] + self._length(each.successor) for each in self.outputs[name]
            )
        return found

    def _length(self, name: str) -> float:
        return self.by_name[name].restriction.length if name in self.by_name else 0.0

    def additional_time(self, producer: str) -> float:
        """Δa: the restriction windows on the longest path from a producer to the consumer (section
        3.2.4)."""
        return self._additional[producer]

    def points(self, start: float, history: float) -> dict[str, float]:
        """Δi by producer: where its stream begins so that an epoch from ``start`` on is complete (Lemma
        1)."""
        return {name: start - history - self._additional[name] for name in self.order}


T = TypeVar("T")


def fan_out(streams: Iterable[Stream], messages: Iterable[T]) -> list[tuple[Stream, T]]:
    """Messages of a producer on all its streams, each without the events that its restriction excludes."""
    return [(stream, each) for each in messages for stream in streams if stream.carries(each)]
