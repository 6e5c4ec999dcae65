"""What is processed in a row is handed on together, but never waits for what takes long."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from node_agent.apps.dataflow.delivery.intake import Captured, Intake
from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import TupleDropped, TupleProcessed
from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.operators.one_by_one import OneByOne, Payloads
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.model.telemetry import Event
from node_agent.ports.os_port import OsPort
from node_agent.ports.virtual.loop import VirtualLoop

STOP = ErrorPolicy()


class Scripted:
    """Sleeps, fails or computes for as long as a payload says."""

    async def process(self, unit: Unit) -> Sequence[bytes]:
        [payload] = unit.payloads()
        match payload.split():
            case [b"sleep", seconds]:
                await asyncio.sleep(float(seconds))
            case [b"compute", seconds]:
                until = time.perf_counter() + float(seconds)
                while time.perf_counter() < until:
                    pass
            case [b"fail"]:
                raise ValueError("no")
        return [payload]


class Bench:
    def __init__(self, on_error: ErrorPolicy = STOP) -> None:
        self.events: list[Event] = []
        self.handed_on: list[tuple[float, list[int]]] = []
        self.results: list[Payloads] = []
        spec = OperatorSpec("op", "scripted", ("camera",), on_error=on_error)
        context = Context("op/0", OsPort("127.0.0.1"), asyncio.Semaphore(1), spec)
        recorder = TupleRecorder("op/0", self.events.append)
        self.operator = OneByOne(Scripted(), spec, "operator", context, recorder, self._hand_on)

    def _hand_on(self, items: Sequence[StreamTuple], results: Sequence[Payloads]) -> None:
        self.handed_on.append((asyncio.get_running_loop().time(), [item.tau for item in items]))
        self.results += results

    async def work(self, *payloads: bytes) -> None:
        items = [
            StreamTuple("camera/0", i, i - 1, 0, 0, (p,) if p else ()) for i, p in enumerate(payloads, 1)
        ]
        await self.operator.work(("camera", item) for item in items)

    def processed(self) -> list[tuple[int, int, int]]:
        return [(e.tau, e.tuples, e.took_ns) for e in self.events if isinstance(e, TupleProcessed)]


@pytest.fixture
def virtual() -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        yield runner


def test_what_takes_no_time_is_handed_on_together(virtual: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.work(b"a", b"", b"c")
        assert bench.handed_on == [(0.0, [1, 2, 3])]
        assert bench.results == [(b"a",), (), (b"c",)]
        assert bench.processed() == [(1, 3, 0)]

    virtual.run(scenario())


def test_nothing_that_is_finished_waits_for_what_takes_long(virtual: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.work(b"a", b"b", b"sleep 2", b"d", b"sleep 3")
        assert bench.handed_on == [(0.0, [1, 2]), (2.0, [3]), (2.0, [4]), (5.0, [5])]
        assert bench.processed() == [(1, 2, 0), (3, 1, 2 * 10**9), (4, 1, 0), (5, 1, 3 * 10**9)]

    virtual.run(scenario())


def test_what_was_given_up_leaves_a_hole_in_its_place(virtual: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(ErrorPolicy(retries=2, then="dead_letter"))
        await bench.work(b"a", b"fail", b"c")
        assert [taus for _, taus in bench.handed_on] == [[1], [2], [3]]
        assert bench.results == [(b"a",), (), (b"c",)]
        assert [(e.tau, e.reason) for e in bench.events if isinstance(e, TupleDropped)] == [
            (2, "dead_letter:ValueError: no")
        ]
        assert [tau for tau, _, _ in bench.processed()] == [1, 3]
        assert asyncio.get_running_loop().time() == pytest.approx(0.3)  # it was tried three times

    virtual.run(scenario())


def test_an_operator_that_only_computes_leaves_others_their_turn() -> None:
    async def scenario() -> None:
        bench, turns = Bench(), 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await bench.work(*[b"compute 0.002"] * 10)
        task.cancel()
        assert turns >= 10
        assert [taus for _, taus in bench.handed_on] == [[tau] for tau in range(1, 11)]

    asyncio.run(scenario())


class Ready:
    """A source that has its tuples at once, but for those that are divisible by ``pause``."""

    def __init__(self, count: int, pause: int) -> None:
        self._count = count
        self._pause = pause

    async def next(self, tau: int) -> bytes | None:
        if tau % self._pause == 0:
            await asyncio.sleep(1)
        return b"%d" % tau if tau <= self._count else None


def test_a_source_hands_on_what_it_has_before_it_waits_for_more(virtual: asyncio.Runner) -> None:
    async def scenario() -> None:
        taken: list[tuple[float, list[bytes]]] = []

        def take(captured: list[Captured]) -> None:
            taken.append((asyncio.get_running_loop().time(), [payload for (payload,), _ in captured]))

        context = Context("camera/0", OsPort("127.0.0.1"), asyncio.Semaphore(1))
        intake = Intake(Ready(6, pause=3), context, take, lambda reason: None)
        while await intake.take(4):
            pass
        assert taken == [
            (0.0, [b"1", b"2"]),
            (1.0, [b"3"]),
            (1.0, [b"4", b"5"]),
            (2.0, [b"6"]),
        ]

    virtual.run(scenario())
