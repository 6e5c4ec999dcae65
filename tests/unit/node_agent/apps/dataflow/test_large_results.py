"""Results that no frame can carry: they go by the policy of their operator, and end no agent."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct

from node_agent.apps.dataflow.best_effort.dispatcher import Dispatcher, Limits
from node_agent.apps.dataflow.delivery.ack_batcher import AckBatcher
from node_agent.apps.dataflow.delivery.channel import Channel
from node_agent.apps.dataflow.delivery.effects import Acknowledge
from node_agent.apps.dataflow.events import TupleDropped
from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec, Query, Reliability
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, Each, UnitRule
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.wire.claims import MOST_RANGES, check_answer
from node_agent.apps.dataflow.wire.codec import TupleConnection
from node_agent.apps.dataflow.wire.packing import MAX_PAYLOAD, MAX_PAYLOADS, unfit
from node_agent.model.telemetry import Event
from node_agent.transport.errors import TooLarge
from node_agent.transport.framing import encode
from tests.unit.node_agent.agent.test_agent import RadioTestbed, plan, run

COUNT = 9
EVERY = 3
"""Of so many results one cannot be sent."""
WHERE = {"numbers": ("n1",), "burst": ("n2", "n3"), "screen": ("n4",)}
LEVELS: tuple[Reliability, ...] = ("best_effort", "at_least_once", "exactly_once")
DEAD_LETTER = ErrorPolicy(then="dead_letter")

RESULTS: dict[str, Any] = {
    "many": (bytes(2),) * 40_000,
    "empty": (b"",) * 40_000,
    "large": (bytes(MAX_PAYLOAD + 1),),
    "text": ("text",),
}


class Params(Struct, frozen=True):
    result: str = ""


class Numbers:
    """A source: every third tuple is too much, if ``result`` says how."""

    def __init__(self, params: Params, context: Context) -> None:
        self._context = context
        self._result = params.result

    async def next(self, tau: int) -> bytes | None:
        await self._context.sleep(0.1)
        if tau > COUNT:
            return None
        return RESULTS[self._result][0] if self._result and tau % EVERY == 0 else tau.to_bytes(2, "big")


class Burst:
    def __init__(self, params: Params, context: Context) -> None:
        self._result = params.result

    async def process(self, unit: Unit) -> Sequence[bytes]:
        return RESULTS[self._result] if unit.tau % EVERY == 0 else unit.payloads()


KINDS = (
    OperatorKind("large_numbers", "source", Params, Numbers),
    OperatorKind("large_burst", "operator", Params, Burst),
)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    for kind in KINDS:
        OPERATORS.register(kind.name, kind)
    yield
    for kind in KINDS:
        OPERATORS.unregister(kind.name)


def query(level: Reliability, source: str, result: str, takes: UnitRule) -> Query:
    return Query(
        "large",
        (
            OperatorSpec("numbers", "large_numbers", params={"result": source}, on_error=DEAD_LETTER),
            OperatorSpec("burst", "large_burst", ("numbers",), {"result": result}, takes, DEAD_LETTER),
            OperatorSpec("screen", "sink", ("burst",)),
        ),
        level,
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("takes", [Each(), CountWindow(1, 1)], ids=["each", "window"])
@pytest.mark.parametrize("result", RESULTS)
def test_a_result_that_cannot_be_sent_is_a_dead_letter(
    tmp_path: Path, level: Reliability, takes: UnitRule, result: str
) -> None:
    check(tmp_path, query(level, "", result, takes), "burst")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("result", ["large", "text"])
def test_so_is_what_a_source_captures(tmp_path: Path, level: Reliability, result: str) -> None:
    check(tmp_path, query(level, result, "", Each()), "numbers")


def check(directory: Path, wanted: Query, where: str) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(directory, plan(wanted, WHERE))
        await testbed.start()
        await asyncio.sleep(10)
        await testbed.stop()
        assert [agent.failure for agent in testbed.agents.values() if agent.failure] == []
        dropped = [r for r in testbed.records("tuple_dropped") if r["reason"].startswith("dead_letter:")]
        assert {(r["replica"].partition("/")[0], r["tau"]) for r in dropped} == {
            (where, tau) for tau in (3, 6, 9)
        }
        assert all("CannotBeSent" in r["reason"] for r in dropped)
        assert {r["tau"] for r in testbed.records("tuple_delivered")} == {1, 2, 4, 5, 7, 8}

    run(scenario)


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_what_does_not_fit_is_told_in_words(result: Any) -> None:
    assert unfit(result)


def test_what_fits_fits() -> None:
    for payloads in [(), (b"",), (bytes(MAX_PAYLOAD),), (b"x",) * MAX_PAYLOADS]:
        assert unfit(payloads) is None


def test_acknowledgements_of_any_number_of_ranges_go_in_frames() -> None:
    reports = AckBatcher()
    holes = [(2 * i, 2 * i) for i in range(1, 100_000)]
    reports.add(Acknowledge("camera/0", {"camera/0": holes, "camera/1": holes[:10]}, {"camera/0": [(1, 9)]}))
    told = [message for to, message in reports.take() if to == "camera/0"]
    for message in told:
        encode(message)
        check_answer(message)
        assert all(len(ranges) <= MOST_RANGES for ranges in message.done.values())
    assert [r for message in told for r in message.done.get("camera/0", ())] == holes
    assert [r for message in told for r in message.done.get("camera/1", ())] == holes[:10]
    assert list(reports.take()) == []


class Narrow:
    """A connection of which no frame carries a payload."""

    answers = True

    def __init__(self) -> None:
        self.sent: list[StreamTuple] = []

    def hurry(self) -> None:
        pass

    async def ready(self) -> None:
        pass

    async def send(self, items: Sequence[StreamTuple], *more: object) -> int:
        await asyncio.sleep(0)
        if items[0].payloads:
            raise TooLarge("too much")
        self.sent.append(items[0])
        return 1

    async def close(self) -> None:
        pass


ITEMS = [StreamTuple("camera/0", tau, tau - 1, tau, tau - 1, (b"x",)) for tau in (1, 2)]


def test_what_a_link_finds_too_large_is_lost_alone_and_leaves_a_hole() -> None:
    async def scenario() -> None:
        connection, dropped = Narrow(), list[tuple[int, str]]()
        channel = Channel(
            lambda on_message, on_lost: cast(TupleConnection, connection),
            lambda pair, message: None,
            lambda items: None,
            lambda: None,
            lambda item, reason: dropped.append((item.tau, reason)),
        )
        task = asyncio.create_task(channel.run())
        channel.put(ITEMS, {})
        await asyncio.sleep(0.1)
        assert not task.done() and dropped == [(1, "too_large"), (2, "too_large")]
        assert [(item.tau, item.payloads) for item in connection.sent] == [(1, ()), (2, ())]
        task.cancel()

    asyncio.run(scenario())


def test_without_acknowledgement_it_is_dropped() -> None:
    async def scenario() -> None:
        events: list[Event] = []
        dispatcher = Dispatcher("camera/0", "detect", lambda to, on_lost: Narrow(), events.append, Limits())
        task = asyncio.create_task(dispatcher.run())
        dispatcher.steer(Hop("detect/0", 1.0))
        dispatcher.extend(ITEMS)
        await asyncio.sleep(0.1)
        assert not task.done()
        assert [(e.tau, e.reason) for e in events if isinstance(e, TupleDropped)] == [
            (1, "too_large"),
            (2, "too_large"),
        ]
        task.cancel()

    asyncio.run(scenario())
