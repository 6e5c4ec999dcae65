"""A stream query: a dataflow graph of named operators (seed 000, section II-A)."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct


class OperatorSpec(Struct, frozen=True):
    """One vertex of the dataflow graph; ``after`` names the operators whose output it consumes."""

    name: str
    kind: str
    after: tuple[str, ...] = ()
    params: dict[str, Any] = {}


class Query(Struct, frozen=True):
    """A dataflow graph. Build it from checked input: ``problems()`` says what is wrong with it."""

    name: str
    operators: tuple[OperatorSpec, ...]

    def operator(self, name: str) -> OperatorSpec:
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)

    def names(self) -> tuple[str, ...]:
        return tuple(operator.name for operator in self.operators)

    def upstream(self, name: str) -> tuple[str, ...]:
        return self.operator(name).after

    def downstream(self, name: str) -> tuple[str, ...]:
        return tuple(o.name for o in self.operators if name in o.after)

    def sources(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.operators if not o.after)

    def sinks(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.operators if not self.downstream(o.name))

    def inner(self) -> tuple[str, ...]:
        """Operators between sources and sinks: the ones that replication applies to."""
        ends = {*self.sources(), *self.sinks()}
        return tuple(name for name in self.names() if name not in ends)

    def topological(self) -> tuple[str, ...]:
        """Operators ordered so that each comes after all of its inputs."""
        done: list[str] = []
        waiting = list(self.operators)
        while waiting:
            ready = [o for o in waiting if all(name in done for name in o.after)]
            if not ready:
                raise ValueError(f"the query has a cycle through {', '.join(o.name for o in waiting)}")
            done.extend(o.name for o in ready)
            waiting = [o for o in waiting if o not in ready]
        return tuple(done)

    def reachable_from(self, starts: Iterable[str]) -> frozenset[str]:
        seen: set[str] = set()
        frontier = list(starts)
        while frontier:
            name = frontier.pop()
            if name not in seen:
                seen.add(name)
                frontier.extend(self.downstream(name))
        return frozenset(seen)
