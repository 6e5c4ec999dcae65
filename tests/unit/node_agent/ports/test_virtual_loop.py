"""Virtual time: asyncio's own tools on a clock that jumps, in an order that can be repeated."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import NoReturn

import pytest

from node_agent.ports.virtual.loop import NS, Deadlock, UnhandledErrors, VirtualLoop, VirtualTimeError
from orchestrator.radio.medium import Schedule


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_a_loop_is_a_schedule(loop: VirtualLoop) -> None:
    schedule: Schedule = loop
    assert schedule.now_ns() == 0


def test_sleeping_takes_virtual_time_only(loop: VirtualLoop) -> None:
    async def main() -> float:
        await asyncio.sleep(86_400 * 7)
        return loop.time()

    assert loop.run_until_complete(main()) == 86_400 * 7
    assert loop.now_ns() == 86_400 * 7 * NS


def test_events_of_one_instant_run_in_the_order_they_were_scheduled(loop: VirtualLoop) -> None:
    order: list[str] = []

    def first() -> None:
        order.append("first")
        loop.call_soon(order.append, "soon")
        loop.call_at_ns(5, order.append, "now")
        loop.call_at_ns(0, order.append, "past")

    loop.call_at_ns(6, order.append, "later")
    loop.call_at_ns(5, first)
    loop.call_at(5e-9, order.append, "second")
    loop.call_later(5e-9, order.append, "third")
    loop.run_until_ns(10)
    assert order == ["first", "second", "third", "soon", "now", "past", "later"]


def test_many_equal_times_stay_in_order(loop: VirtualLoop) -> None:
    order: list[int] = []
    for index in range(1000):
        loop.call_at_ns(1000 - index % 3, order.append, index)
    loop.run_until_ns(1000)
    assert order == sorted(range(1000), key=lambda index: (1000 - index % 3, index))


def test_neighbouring_nanoseconds_stay_apart_after_days(loop: VirtualLoop) -> None:
    days = 10 * 86_400 * NS
    loop.run_until_ns(days)
    order: list[tuple[str, int]] = []

    def note(what: str) -> None:
        order.append((what, loop.now_ns() - days))

    loop.call_at_ns(days + 2, note, "b")
    loop.call_at_ns(days + 1, note, "a")
    loop.call_later(3e-9, note, "c")
    loop.call_at(loop.time(), note, "at once")
    loop.run_until_ns(days + 10)
    assert order == [("at once", 0), ("a", 1), ("b", 2), ("c", 3)]


def test_steps_end_exactly_where_they_should(loop: VirtualLoop) -> None:
    seen: list[int] = []
    for when in (99, 100, 101):
        loop.call_at_ns(when, lambda: seen.append(loop.now_ns()))
    loop.run_until_ns(100)
    assert (seen, loop.now_ns()) == ([99, 100], 100)
    loop.run_until_ns(100)
    assert (seen, loop.now_ns()) == ([99, 100], 100)
    loop.run_until_ns(5000)
    assert (seen, loop.now_ns()) == ([99, 100, 101], 5000)
    with pytest.raises(ValueError, match="cannot go back"):
        loop.run_until_ns(4999)


def test_what_an_event_of_the_last_instant_starts_still_belongs_to_the_step(loop: VirtualLoop) -> None:
    seen: list[str] = []

    async def task() -> None:
        await asyncio.sleep(0)
        seen.append("task")

    tasks: list[asyncio.Task[None]] = []
    loop.call_at_ns(100, lambda: tasks.append(loop.create_task(task())))
    loop.run_until_ns(100)
    assert seen == ["task"]


def test_tasks_live_on_between_steps(loop: VirtualLoop) -> None:
    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.1)
            ticks.append(loop.now_ns())

    task = loop.create_task(tick())
    loop.run_until_ns(NS // 4)
    loop.run_until_ns(NS // 2)
    assert ticks == [index * NS // 10 for index in (1, 2, 3, 4, 5)]
    task.cancel()
    loop.run_until_ns(NS)
    assert task.cancelled() and len(ticks) == 5


def test_timeouts_cancel_and_leave_no_trace(loop: VirtualLoop) -> None:
    async def main() -> list[object]:
        seen: list[object] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.sleep(3)
        seen.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 1)
        seen.append(loop.time())
        seen.append(await asyncio.wait_for(asyncio.sleep(1, "done"), 60))
        seen.append(loop.time())
        async with asyncio.timeout(0.5) as limit:
            limit.reschedule(loop.time() + 5)
            await asyncio.sleep(4)
        seen.append(loop.time())
        return seen

    assert loop.run_until_complete(main()) == [2.0, 3.0, "done", 4.0, 8.0]


def test_cancelled_timers_do_not_pile_up(loop: VirtualLoop) -> None:
    async def main() -> None:
        for _ in range(20_000):
            async with asyncio.timeout(3600):
                await asyncio.sleep(0.001)

    loop.run_until_complete(main())
    assert len(loop._timers) < 1000


def test_queues_events_and_task_groups(loop: VirtualLoop) -> None:
    async def main() -> list[tuple[float, int]]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        done = asyncio.Event()
        seen: list[tuple[float, int]] = []

        async def produce() -> None:
            for item in range(3):
                await queue.put(item)
            done.set()

        async def consume() -> None:
            while not (done.is_set() and queue.empty()):
                await asyncio.sleep(1)
                seen.append((loop.time(), await queue.get()))

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        return seen

    assert loop.run_until_complete(main()) == [(1.0, 0), (2.0, 1), (3.0, 2)]


def test_a_failing_task_cancels_its_group(loop: VirtualLoop) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(1000))
            await asyncio.sleep(1)
            raise KeyError("x")

    with pytest.raises(ExceptionGroup) as caught:
        loop.run_until_complete(main())
    assert caught.group_contains(KeyError)
    assert loop.time() == 1.0


def test_waiting_for_nothing_is_a_deadlock(loop: VirtualLoop) -> None:
    async def main() -> None:
        await asyncio.sleep(7)
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"7000000000 ns .* 2 tasks wait: patient, stuck"):
        other = loop.create_task(asyncio.Event().wait(), name="patient")
        loop.run_until_complete(loop.create_task(main(), name="stuck"))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_ns(loop.now_ns())
    assert other.cancelled()


def test_a_timer_at_infinity_keeps_nobody_alive(loop: VirtualLoop) -> None:
    async def main() -> None:
        await asyncio.sleep(float("inf"))

    with pytest.raises(Deadlock):
        loop.run_until_complete(main())


def fail(message: str) -> NoReturn:
    raise LookupError(message)


def test_errors_of_callbacks_are_raised_together_and_the_run_can_go_on(loop: VirtualLoop) -> None:
    seen: list[str] = []
    loop.call_at_ns(10, fail, "one")
    loop.call_at_ns(10, fail, "two")
    loop.call_at_ns(10, seen.append, "same instant")
    loop.call_at_ns(20, seen.append, "later")
    with pytest.raises(UnhandledErrors) as caught:
        loop.run_until_ns(100)
    assert [str(error) for error in caught.value.exceptions] == ["one", "two"]
    assert (seen, loop.now_ns()) == (["same instant"], 10)
    loop.run_until_ns(100)
    assert (seen, loop.now_ns()) == (["same instant", "later"], 100)


def test_the_error_of_a_task_nobody_awaits_is_raised(loop: VirtualLoop) -> None:
    async def broken() -> None:
        await asyncio.sleep(1)
        fail("nobody looks")

    async def main() -> None:
        asyncio.ensure_future(broken())  # noqa: RUF006
        await asyncio.sleep(5)

    with pytest.raises(UnhandledErrors) as caught:
        loop.run_until_complete(main())
    assert caught.group_contains(LookupError, match="nobody looks")


def test_errors_after_the_last_step_are_raised_by_close() -> None:
    loop = VirtualLoop()
    loop.call_exception_handler({"message": "found by the garbage collector"})
    with pytest.raises(UnhandledErrors) as caught:
        loop.close()
    assert caught.group_contains(VirtualTimeError, match="garbage")


def test_an_exception_handler_takes_the_errors(loop: VirtualLoop) -> None:
    taken: list[str] = []
    loop.set_exception_handler(lambda _, context: taken.append(str(context["exception"])))
    loop.call_soon(fail, "taken")
    loop.run_until_ns(1)
    assert taken == ["taken"]


def test_an_interrupt_passes_through(loop: VirtualLoop) -> None:
    def interrupt() -> NoReturn:
        raise KeyboardInterrupt

    loop.call_at_ns(5, interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_ns(10)


def test_threads_are_refused(loop: VirtualLoop) -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(VirtualTimeError, match="thread"):
        loop.run_until_complete(main())


def test_context_variables_belong_to_their_task(loop: VirtualLoop) -> None:
    node: ContextVar[str] = ContextVar("node", default="none")

    async def agent(name: str) -> str:
        node.set(name)
        await asyncio.sleep(1)
        return node.get()

    async def main() -> tuple[str, str]:
        first, second = await asyncio.gather(agent("a"), agent("b"))
        return first, second

    assert loop.run_until_complete(main()) == ("a", "b")
    assert node.get() == "none"


def test_it_works_with_a_runner_which_cleans_up() -> None:
    ended: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            ended.append("generator")

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    async def main() -> int:
        waiting.append(asyncio.create_task(background()))
        await asyncio.sleep(1)
        assert not waiting[0].done()
        return await anext(unfinished)

    waiting: list[asyncio.Task[None]] = []  # held here: a task that nobody holds may be collected at any time
    unfinished = numbers()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == 1
    assert sorted(ended) == ["generator", "task"]


def test_a_closed_loop_takes_nothing_more() -> None:
    loop = VirtualLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_at_ns(5, print)


def test_a_callback_learns_for_how_long_nothing_else_happens(loop: VirtualLoop) -> None:
    free: list[tuple[int, int]] = []

    def look() -> None:
        free.append((loop.now_ns(), loop.free_until_ns()))

    loop.call_at_ns(100, look)
    loop.call_at_ns(200, look)
    loop.call_at_ns(300, look)
    loop.call_at_ns(300, lambda: None)  # something else happens at that very instant
    loop.call_at_ns(500, look)
    loop.call_at_ns(601, look)  # past the end of the step
    loop.run_until_ns(600)
    assert free == [(100, 199), (200, 299), (300, 300), (500, 600)]
    assert loop.now_ns() == 600


def test_the_clock_can_be_moved_on_within_a_callback(loop: VirtualLoop) -> None:
    seen: list[int] = []

    def jump() -> None:
        loop.jump_to_ns(loop.free_until_ns())
        loop.call_at_ns(loop.now_ns(), lambda: seen.append(loop.now_ns()))

    loop.call_at_ns(100, jump)
    loop.call_at_ns(200, lambda: seen.append(loop.now_ns()))
    loop.run_until_ns(600)
    assert seen == [199, 200]
