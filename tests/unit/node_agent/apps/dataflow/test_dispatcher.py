"""The dispatcher: what becomes of the tuple in hand when routes change and connections fail."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from node_agent.apps.dataflow.best_effort.dispatcher import Dispatcher, Limits
from node_agent.apps.dataflow.events import TupleDropped, TupleSent
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.wire.codec import OnLost
from node_agent.model.telemetry import Event
from node_agent.ports import ConnectionLost
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.transport.messages import Pair

Behaviour = Callable[[], Awaitable[None]]


async def take() -> None:
    pass


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    await asyncio.sleep(0.5)
    raise ConnectionLost("broken")


class ScriptedSender:
    """A connection to one replica that does as the test says."""

    answers = True

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.batches: list[list[int]] = []
        self.closed = False

    def hurry(self) -> None:
        pass

    async def ready(self) -> None:
        await self.behaviour()

    async def send(self, items: Sequence[StreamTuple]) -> int:
        self.batches.append([item.tau for item in items])
        return min(len(items), 3)

    async def close(self) -> None:
        self.closed = True


class Bench:
    """A dispatcher of ``camera/0`` in front of connections to detect/0 and detect/1."""

    def __init__(self, *behaviours: Behaviour, **limits: Any) -> None:
        self.senders = {f"detect/{i}": ScriptedSender(behaviour) for i, behaviour in enumerate(behaviours)}
        self.events: list[tuple[float, Event]] = []
        room = Limits(**{"output_buffer": 16, **limits})
        self.losses: dict[str, OnLost] = {}
        self.dispatcher = Dispatcher("camera/0", "detect", self._sender, self._record, room)
        self._task = asyncio.create_task(self.dispatcher.run())

    def _sender(self, to: str, on_lost: OnLost) -> ScriptedSender:
        self.losses[to] = on_lost
        return self.senders[to]

    def _record(self, event: Event) -> None:
        self.events.append((asyncio.get_running_loop().time(), event))

    def offer(self, *taus: int) -> None:
        self.dispatcher.offer([StreamTuple("camera/0", tau, tau - 1, 0, 0, (b"",)) for tau in taus])

    def sent(self) -> list[tuple[float, int, str]]:
        sent = [(at, e) for at, e in self.events if isinstance(e, TupleSent)]
        return [(at, tau, e.to) for at, e in sent for tau in range(e.tau, e.tau + e.tuples)]

    def dropped(self) -> list[tuple[float, int, str]]:
        return [(at, e.tau, e.reason) for at, e in self.events if isinstance(e, TupleDropped)]

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.dispatcher.close()


@pytest.fixture
def runner() -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as virtual:
        yield virtual


def test_a_send_that_hangs_on_the_old_route_moves_to_the_new_one(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(hang, take)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1, 2)
        await asyncio.sleep(0.25)
        bench.dispatcher.steer(Hop("detect/1", None))
        await asyncio.sleep(5)
        # The time-out counts from when the send began.
        assert bench.sent() == [(1.0, 1, "detect/1"), (1.0, 2, "detect/1")]
        await bench.end()

    runner.run(scenario())


def test_a_send_that_has_hung_long_enough_moves_at_once(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(hang, take)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1)
        await asyncio.sleep(10)
        assert bench.sent() == []
        bench.dispatcher.steer(Hop("detect/1", None))
        await asyncio.sleep(1)
        assert bench.sent() == [(10.0, 1, "detect/1")]
        await bench.end()

    runner.run(scenario())


@pytest.mark.parametrize("route", [None, "detect/0"])
def test_a_send_may_hang_while_there_is_no_better_route(runner: asyncio.Runner, route: str | None) -> None:
    async def scenario() -> None:
        done = asyncio.Event()

        async def slow() -> None:
            await done.wait()

        bench = Bench(slow, take)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1)
        await asyncio.sleep(0.5)
        bench.dispatcher.steer(Hop("detect/1", None))
        await asyncio.sleep(0.2)
        bench.dispatcher.steer(Hop(route, None) if route else None)
        await asyncio.sleep(10)
        done.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [(tau, to) for _, tau, to in bench.sent()] == [(1, "detect/0")]
        await bench.end()

    runner.run(scenario())


def test_a_stream_may_be_spread_and_a_hang_is_left_when_its_replica_is_no_longer_among_those_used(
    runner: asyncio.Runner,
) -> None:
    async def scenario() -> None:
        bench = Bench(take, take, hang)
        bench.dispatcher.steer(Hop("detect/0", None, (("detect/0", 0.5), ("detect/1", 0.5))))
        bench.offer(1, 2, 3)
        await asyncio.sleep(1)
        assert [(tau, to) for _, tau, to in bench.sent()] == [
            (1, "detect/1"),
            (2, "detect/0"),
            (3, "detect/1"),
        ]
        bench.dispatcher.steer(Hop("detect/2", None))
        bench.offer(4)
        await asyncio.sleep(2)
        bench.dispatcher.steer(Hop("detect/2", None, (("detect/2", 0.5), ("detect/1", 0.5))))
        await asyncio.sleep(2)
        assert len(bench.sent()) == 3
        bench.dispatcher.steer(Hop("detect/1", None))
        await asyncio.sleep(1)
        assert bench.sent()[3:] == [(5.0, 4, "detect/1")]
        await bench.end()

    runner.run(scenario())


def test_what_gathers_while_a_link_is_busy_goes_along_in_order(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        free = asyncio.Event()

        async def busy() -> None:
            await free.wait()

        bench = Bench(busy, take)
        bench.dispatcher.steer(Hop("detect/0", None, (("detect/0", 0.5), ("detect/1", 0.5))))
        bench.offer(2)
        await asyncio.sleep(1)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(3, 4, 5, 6, 7)
        await asyncio.sleep(1)
        assert bench.dispatcher.waiting() == 5
        free.set()
        await asyncio.sleep(1)
        # The connection takes three at a time.
        assert bench.senders["detect/0"].batches == [[2, 3, 4, 5, 6, 7], [5, 6, 7]]
        assert [tau for _, tau, _ in bench.sent()] == [2, 3, 4, 5, 6, 7]
        await bench.end()

    runner.run(scenario())


def test_only_what_is_for_the_same_replica_goes_along(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(take, take)
        bench.offer(1, 2, 3, 4)
        bench.dispatcher.steer(Hop("detect/0", None, (("detect/0", 0.5), ("detect/1", 0.5))))
        await asyncio.sleep(1)
        assert bench.senders["detect/0"].batches == [[2], [4]]
        assert bench.senders["detect/1"].batches == [[1], [3]]
        await bench.end()

    runner.run(scenario())


def test_after_a_broken_link_the_tuple_goes_where_the_route_leads_now(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(fail, take)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1, 2, 3)
        await asyncio.sleep(0.7)
        bench.dispatcher.steer(Hop("detect/1", None))
        await asyncio.sleep(5)
        assert bench.sent() == [(1.0, tau, "detect/1") for tau in (1, 2, 3)]
        assert bench.dropped() == []
        await bench.end()
        assert all(sender.closed for sender in bench.senders.values())

    runner.run(scenario())


def test_a_link_that_fails_at_once_until_it_is_told_why_keeps_nobody_from_telling_it(
    runner: asyncio.Runner,
) -> None:
    async def scenario() -> None:
        dead = True

        async def fail_at_once() -> None:
            if dead:
                raise ConnectionLost("broken")

        async def notice() -> None:
            nonlocal dead
            dead = False

        bench = Bench(fail_at_once)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1)
        await asyncio.sleep(0)
        asyncio.get_running_loop().create_task(notice())
        await asyncio.sleep(1)
        assert [tau for _, tau, _ in bench.sent()] == [1]
        await bench.end()

    runner.run(scenario())


def test_a_tuple_is_retried_up_to_an_age_and_the_next_gets_its_own_chance(
    runner: asyncio.Runner,
) -> None:
    async def scenario() -> None:
        bench = Bench(fail, retry_age=3.0)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1, 2)
        await asyncio.sleep(20)
        assert bench.dropped() == [(3.5, 1, "expired"), (7.0, 2, "expired")]
        await bench.end()

    runner.run(scenario())


def test_waiting_for_a_route_costs_no_tuple(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(take)
        bench.offer(1, 2)
        await asyncio.sleep(1000)
        bench.dispatcher.steer(Hop("detect/0", None))
        await asyncio.sleep(1)
        assert bench.sent() == [(1000.0, 1, "detect/0"), (1000.0, 2, "detect/0")]
        await bench.end()

    runner.run(scenario())


def test_a_full_buffer_drops_the_oldest_of_a_source_and_stops_an_operator(
    runner: asyncio.Runner,
) -> None:
    async def scenario() -> None:
        bench = Bench(take, output_buffer=3)
        bench.offer(1, 2, 3, 4, 5)
        assert bench.dropped() == [(0.0, 1, "source_buffer_full"), (0.0, 2, "source_buffer_full")]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await bench.dispatcher.put(StreamTuple("camera/0", 6, 5, 0, 0, (b"",)))
        bench.dispatcher.steer(Hop("detect/0", None))
        await bench.dispatcher.put(StreamTuple("camera/0", 7, 6, 0, 0, (b"",)))
        await asyncio.sleep(1)
        assert [tau for _, tau, _ in bench.sent()] == [3, 4, 5, 7]
        await bench.end()

    runner.run(scenario())


def test_what_a_broken_link_had_not_brought_is_dropped_for_a_reason(runner: asyncio.Runner) -> None:
    async def scenario() -> None:
        bench = Bench(take)
        bench.dispatcher.steer(Hop("detect/0", None))
        bench.offer(1, 2)
        await asyncio.sleep(1)
        under_way = [
            StreamTuple("camera/0", 2, 1, 0, 0, (b"",)),
            StreamTuple("camera/0", 3, 2, 0, 0, (), last=True),
        ]
        bench.losses["detect/0"](Pair("camera/0", "detect/0"), under_way, "silent")
        assert bench.dropped() == [(1.0, 2, "link_failed")]
        await bench.end()

    runner.run(scenario())
