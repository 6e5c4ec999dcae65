"""Runs a query in one process, without network and in virtual time: for users' own unit tests.

Sources and sinks are lists. An element of a list is captured every ``every`` seconds, and sleeping or
computing takes no real time. The same input gives the same output.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import NamedTuple, TypeVar, cast

import msgspec

from node_agent.apps.dataflow.model import query as model
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.operators.processing import GivenUp, process
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, Operator
from node_agent.apps.dataflow.query.build import Query
from node_agent.apps.dataflow.windows.assembly import Assembler, assembler_for
from node_agent.model.telemetry import Event
from node_agent.ports import Address, DatagramSocket, Listener, OnDatagram, OnStream, Stream, Unreachable
from node_agent.ports.virtual.loop import VirtualLoop

T = TypeVar("T")


class EOF:
    """In a source's list: the stream ends here. The end of the list says the same."""


class ABORT:
    """In a source's list: the source dies here without notice. What it left open stays open."""


class PAUSE(NamedTuple):
    """In a source's list: nothing is captured for this many seconds."""

    seconds: float


Element = bytes | PAUSE | type[EOF] | type[ABORT]


class DeadLetter(NamedTuple):
    """A unit that an operator failed on and gave up, as its policy says."""

    operator: str
    origin: str
    tau: int
    reason: str


class Results(dict[str, list[bytes]]):
    """Payloads by sink, in the order of delivery; also the units that were given up, and what operators
    recorded.
    """

    dead_letters: list[DeadLetter]
    events: list[Event]


def run(
    query: Query | model.Query, sources: Mapping[str, Sequence[Element]], *, every: float = 1.0
) -> Results:
    """Returns what the sinks get if the sources, by name, capture the elements of these lists.

    Raises QueryError if the query cannot run, and the error of an operator whose policy is to stop.
    """
    built = query.build() if isinstance(query, Query) else query
    names = built.sources()
    if unknown := [name for name in sources if name not in names]:
        raise ValueError(f"{', '.join(unknown)}: the sources of {built.name} are {', '.join(names)}")
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_Run(built).run({name: sources.get(name, ()) for name in names}, every))


def _captured(name: str, elements: Sequence[Element], every: float) -> Iterator[tuple[int, StreamTuple]]:
    """Yields the stream that a list stands for, each item with the time of its capture."""
    origin = f"{name}/0"
    now = prev_born_ns = 0
    tau = 1
    for element in elements:
        if isinstance(element, PAUSE):
            now += round(element.seconds * 1e9)
        elif element is ABORT:
            return
        elif isinstance(element, bytes):
            yield now, StreamTuple(origin, tau, tau - 1, now, prev_born_ns, (element,))
            tau, prev_born_ns = tau + 1, now
            now += round(every * 1e9)
        else:
            break
    yield now, StreamTuple(origin, tau, tau - 1, now, prev_born_ns, last=True)


class _Run:
    def __init__(self, query: model.Query) -> None:
        self._query = query
        self._port = _NoNetwork()
        self._core = asyncio.Lock()
        self._events: list[Event] = []
        self._assemblers: dict[str, Assembler] = {}
        self._operators: dict[str, Operator] = {}
        origins = query.origins()
        for name in query.names():
            spec = query.operator(name)
            if spec.after:
                self._assemblers[name] = assembler_for(spec, origins)
                self._operators[name] = self._made(spec)
        self._results = Results({name: [] for name in query.sinks()})
        self._results.dead_letters = []
        self._results.events = self._events

    async def run(self, sources: Mapping[str, Sequence[Element]], every: float) -> Results:
        streams = [
            [(at, place, item) for at, item in _captured(name, elements, every)]
            for place, (name, elements) in enumerate(sources.items())
        ]
        names = list(sources)
        for at, place, item in merge(*streams, key=lambda captured: captured[:2]):
            await asyncio.sleep(max(0.0, at / 1e9 - asyncio.get_running_loop().time()))
            await self._pass_on(names[place], item)
        return self._results

    def _made(self, spec: OperatorSpec) -> Operator:
        kind = OPERATORS[spec.kind]
        context = Context(f"{spec.name}/0", self._port, self._core, spec, self._events.append)
        return cast(Operator, kind.factory(msgspec.convert(spec.params, kind.params), context))

    async def _pass_on(self, name: str, item: StreamTuple) -> None:
        for downstream in self._query.downstream(name):
            await self._take(downstream, name, item)

    async def _take(self, name: str, upstream: str, item: StreamTuple) -> None:
        spec, assembler = self._query.operator(name), self._assemblers[name]
        for unit in assembler.add(upstream, item):
            try:
                payloads = await process(self._operators[name], unit, spec, asyncio.sleep)
            except GivenUp as error:
                self._results.dead_letters.append(DeadLetter(name, unit.origin, unit.tau, str(error)))
                payloads = ()
            else:
                if name in self._results:
                    self._results[name] += unit.payloads()
            await self._pass_on(name, unit.result(payloads))
            assembler.done(unit.origin, unit.tau)


class _NoNetwork:
    """A port with a clock and no network."""

    clock_name = "virtual"
    host = "test"

    def __init__(self) -> None:
        self.random = random.Random(0)

    def fresh_bytes(self, count: int) -> bytes:
        return self.random.randbytes(count)

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        try:
            return function()
        finally:
            await asyncio.sleep(modelled)

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        raise Unreachable("there is no network in a test")

    async def connect(self, to: Address, timeout: float) -> Stream:
        raise Unreachable("there is no network in a test")

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket:
        raise Unreachable("there is no network in a test")
