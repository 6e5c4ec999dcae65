"""A stream query: a dataflow graph of named operators (the paper, section II-A)."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from node_agent.apps.dataflow.model.units import Each, UnitRule

Reliability = Literal["best_effort", "at_least_once", "exactly_once"]


class ErrorPolicy(Struct, frozen=True):
    """What happens if an operator's function fails: ``retries`` more calls, then give its input up or
    stop.
    """

    retries: int = 0
    then: Literal["stop", "dead_letter"] = "stop"


class OperatorSpec(Struct, frozen=True):
    """One vertex of the dataflow graph; ``after`` names the operators whose output it consumes.

    ``takes``: what it processes at once. ``buffers``: by input, how many tuples may wait on the way from it,
    if not as usual.
    """

    name: str
    kind: str
    after: tuple[str, ...] = ()
    params: dict[str, Any] = {}
    takes: UnitRule = Each()
    on_error: ErrorPolicy = ErrorPolicy()
    buffers: dict[str, int] = {}


class Query(Struct, frozen=True):
    """A dataflow graph. Build it from checked input: ``query_problems`` finds what is wrong with it."""

    name: str
    operators: tuple[OperatorSpec, ...]
    reliability: Reliability = "best_effort"
    module: str | None = None
    """The Python file that defines operators of this query. Nodes that run the query import it."""

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
        """Returns the operators between sources and sinks: these are replicated."""
        ends = {*self.sources(), *self.sinks()}
        return tuple(name for name in self.names() if name not in ends)

    def origins(self) -> dict[str, tuple[str, ...]]:
        """Returns the streams that each operator sends: those of its inputs, or a new one of its own.

        A source is never replicated: its stream has the name of its only replica.
        """
        origins: dict[str, tuple[str, ...]] = {}
        for name in self.topological():
            passing = (origin for upstream in self.upstream(name) for origin in origins[upstream])
            origins[name] = self.makes(name) or tuple(dict.fromkeys(passing))
        return origins

    def makes(self, name: str) -> tuple[str, ...]:
        """Returns the stream that begins at this operator, if one does: at a source, a window or a join."""
        operator = self.operator(name)
        if not operator.after:
            return (f"{name}/0",)
        return () if isinstance(operator.takes, Each) else (name,)

    def topological(self) -> tuple[str, ...]:
        """Returns the operators, each after all of its inputs."""
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
