"""The kinds of operators and the ready-made queries that an experiment can name.

A kind is a name, a struct of parameters and a class; registering one's own takes one call:

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        factor: int = 2

    class Repeat:
        def __init__(self, params: Params, context: Context) -> None:
            self._factor = params.factor

        async def process(self, unit: Unit) -> Sequence[bytes]:
            return [payload * self._factor for payload in unit.payloads()]

    register_operator("repeat", Params, Repeat)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.model.telemetry import Event
from node_agent.ports import Port

Role = Literal["source", "operator", "sink"]
T = TypeVar("T")


class OperatorUnusable(Exception):
    """Raised by a factory: something that the operator cannot do without is missing on this node."""


class Outlet(Protocol):
    """The way out for what a source emits."""

    def has_room(self) -> bool: ...

    async def wait_for_room(self) -> None: ...


def _ignore(event: Event) -> None:
    pass


class Context:
    """What an operator may use of the node it runs on."""

    def __init__(
        self,
        replica: str,
        port: Port,
        core: asyncio.Lock | asyncio.Semaphore,
        spec: OperatorSpec | None = None,
        record: Callable[[Event], None] = _ignore,
        directory: Path | None = None,
    ) -> None:
        """``spec``: the operator as it stands in the query, if it stands in one. ``record`` takes what the
        operator reports, ``directory`` is the node's own, for files that are part of the run's results."""
        self.replica = replica
        self.spec = spec
        self.record = record
        self.directory = directory
        self.outlet: Outlet | None = None
        """Set by whoever runs the operator; of use to a source only."""
        self._port = port
        self._core = core

    def now_ns(self) -> int:
        """The node's clock, for what other nodes will compare. It may be set while the query runs."""
        return self._port.now_ns()

    def time(self) -> float:
        """Seconds on a clock that nobody sets, for durations."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await self._port.sleep(seconds)

    async def compute(self, seconds: float) -> None:
        """Occupy one of the node's cores for ``seconds``, after those who asked before."""
        async with self._core:
            await self._port.sleep(seconds)

    async def work(self, function: Callable[[], T], *, modelled: float) -> T:
        """Occupy one of the node's cores with ``function`` and return its result.

        In real time it takes as long as it takes; in virtual time, ``modelled`` seconds.
        """
        async with self._core:
            return await self._port.work(function, modelled)

    async def wait_for(self, function: Callable[[], T]) -> T:
        """The result of a call that blocks but hardly computes, as reading from a device: needs no core."""
        return await self._port.work(function, 0.0)


class Source(Protocol):
    async def next(self, tau: int) -> bytes | None:
        """Wait until tuple ``tau`` (1, 2, …) is due and return its payload; None ends the stream."""
        ...


class Operator(Protocol):
    async def process(self, unit: Unit) -> Sequence[bytes]:
        """The payloads that ``unit`` gives rise to; none filters it out. A sink returns nothing.

        The same unit gives the same payloads on every replica. It has at least one payload.
        """
        ...


class OperatorKind(msgspec.Struct, frozen=True):
    """``inputs``: how many it is made for; None: any number. ``where`` a user's function is defined."""

    name: str
    role: Role
    params: type[msgspec.Struct]
    factory: Callable[[Any, Context], Source | Operator]
    inputs: int | None = None
    where: str = ""


_operators: dict[str, OperatorKind] = {}
_queries: dict[str, Callable[..., Query]] = {}

OPERATORS: Mapping[str, OperatorKind] = MappingProxyType(_operators)
QUERIES: Mapping[str, Callable[..., Query]] = MappingProxyType(_queries)

P = TypeVar("P", bound=msgspec.Struct)
V = TypeVar("V")


def register_source(name: str, params: type[P], factory: Callable[[P, Context], Source]) -> None:
    _add(_operators, name, OperatorKind(name, "source", params, factory))


def register_operator(
    name: str,
    params: type[P],
    factory: Callable[[P, Context], Operator],
    role: Literal["operator", "sink"] = "operator",
) -> None:
    _add(_operators, name, OperatorKind(name, role, params, factory))


def register_function(kind: OperatorKind) -> None:
    """A user's function, read from a file that may be read again; ``kind.where`` tells it from our own."""
    known = _operators.get(kind.name)
    if known is not None and not known.where:
        raise ValueError(f"{kind.name!r} is registered already")
    _operators[kind.name] = kind


def register_query(name: str, build: Callable[..., Query]) -> None:
    """``build`` raises ValueError for arguments that make no query."""
    _add(_queries, name, build)


def _add(registry: dict[str, V], name: str, value: V) -> None:
    if name in registry:
        raise ValueError(f"{name!r} is registered already")
    registry[name] = value
