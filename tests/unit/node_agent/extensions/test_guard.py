"""Foreign code behind a guard: whatever it does, the caller gets an answer soon."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from node_agent.extensions.errors import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.extensions.files import load_attribute
from node_agent.extensions.guard import (
    LIMIT_S,
    MOST_IN_A_ROW,
    Failed,
    Foreign,
    Guard,
    guarded,
    guarded_await,
)
from node_agent.extensions.time_limit import WALL_FACTOR, OutOfTime, limited

SOON_S = 2.0


def loop() -> int:
    while True:
        pass


def stubborn_loop() -> int:
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def raises(error: BaseException) -> Callable[[], int]:
    def function() -> int:
        raise error

    return function


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


def says_wrong() -> int:
    raise ExtensionError("this is no answer")


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (loop, "it takes more than 50 ms"),
        (stubborn_loop, "it takes more than 50 ms"),
        (lambda: time.sleep(60), "it takes more than 50 ms"),
        (raises(ZeroDivisionError("by zero")), "ZeroDivisionError: by zero"),
        (raises(SystemExit(0)), "SystemExit: 0"),
        (raises(KeyboardInterrupt("mine")), "KeyboardInterrupt: mine"),
        (raises(StopIteration()), "StopIteration: "),
        (raises(asyncio.CancelledError()), "CancelledError: "),
        (raises(Unprintable()), "Unprintable: its message cannot be shown"),
        (says_wrong, "this is no answer"),
        (lambda: sys.exit("bye"), "SystemExit: bye"),
    ],
)
def test_every_failure_ends_soon_and_names_its_place(function: Callable[[], Any], error: str) -> None:
    began = time.monotonic()
    with pytest.raises(Failed) as caught:
        guarded(Foreign.of("policy", "mine", function), function)
    assert caught.value.error == error
    assert caught.value.place.startswith("test_guard.py, line ")
    assert time.monotonic() - began < SOON_S + WALL_FACTOR * LIMIT_S


def test_the_place_is_in_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "my_policy.py"
    file.write_text("import json\n\ndef decide():\n    return json.loads('{')\n")
    decide: Any = load_attribute(file, "decide")
    with pytest.raises(Failed, match=r"my_policy.py, line 4: JSONDecodeError"):
        guarded(Foreign.of("policy", "mine", decide), decide)


def test_a_user_may_still_interrupt() -> None:
    def interrupted() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return loop()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            guarded(FOREIGN, interrupted)
        with pytest.raises(KeyboardInterrupt):
            guarded(FOREIGN, lambda: guarded(FOREIGN, interrupted))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_import_of_a_file_cannot_interrupt(tmp_path: Path) -> None:
    file = tmp_path / "my_policy.py"
    file.write_text("raise KeyboardInterrupt")
    with pytest.raises(ExtensionError, match=r"my_policy.py, line 1: KeyboardInterrupt"):
        load_attribute(file, "decide")


def test_a_late_alarm_does_not_end_the_process() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        assert limited(0.05, lambda: 7) == 7
        assert callable(signal.getsignal(signal.SIGALRM))
        os.kill(os.getpid(), signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_somebody_elses_alarm_goes_on() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    kept = signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        with pytest.raises(OutOfTime):
            limited(0.05, loop)
        assert limited(0.05, lambda: 7) == 7
        until = time.monotonic() + SOON_S
        while not rang and time.monotonic() < until:
            time.sleep(0.01)
        assert rang == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, *kept)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_call_without_a_limit() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(limited(0.01, lambda: 3)))
    thread.start()
    thread.join()
    assert found == [3]


def test_who_fails_too_often_is_left_out_and_a_success_is_forgiving() -> None:
    failures = Failures()
    guard = Guard(Foreign("policy", "mine"), failures)
    calls = 0

    def works_at_times() -> str:
        nonlocal calls
        calls += 1
        if calls % MOST_IN_A_ROW == 0:
            return "theirs"
        raise ValueError(calls)

    answers = [guard.call(works_at_times, lambda: "ours") for _ in range(3 * MOST_IN_A_ROW)]
    assert answers.count("theirs") == 3
    for _ in range(MOST_IN_A_ROW + 5):
        assert guard.call(raises_value_error, lambda: "ours") == "ours"
    assert guard.left_out
    (failure,) = failures
    assert failure.left_out and failure.count == 3 * (MOST_IN_A_ROW - 1) + MOST_IN_A_ROW
    assert failure.error == "ValueError: always"


def raises_value_error() -> str:
    raise ValueError("always")


def test_failures_are_recorded_when_they_double_and_at_the_end() -> None:
    failures = Failures()
    recorded = []
    for _ in range(11):
        failures.add("policy", "mine", "mine.py, line 1", "ValueError: x")
        recorded += [failure.count for failure in failures.to_record()]
    assert recorded == [1, 2, 4, 8]
    assert [failure.count for failure in failures.to_record(last=True)] == [11]
    assert not list(failures.to_record(last=True))
    failures.add("policy", "mine", "mine.py, line 1", "ValueError: x", left_out=True)
    assert [(failure.count, failure.left_out) for failure in failures.to_record()] == [(12, True)]


FOREIGN = Foreign("reader", "mine")


def test_a_coroutine_is_limited_step_by_step() -> None:
    async def patient() -> int:
        for _ in range(3):
            await asyncio.sleep(0.03)
        return 5

    async def endless() -> int:
        await asyncio.sleep(0)
        return loop()

    async def scenario() -> None:
        assert await guarded_await(FOREIGN, patient()) == 5
        with pytest.raises(Failed, match="more than 50 ms"):
            await guarded_await(FOREIGN, endless())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await guarded_await(FOREIGN, asyncio.sleep(60))
        failing: Any = raises(ValueError("no"))
        with pytest.raises(Failed, match="ValueError: no"):
            await guarded_await(FOREIGN, failing_later(failing))

    asyncio.run(scenario())


class BadYield:
    def __await__(self) -> Generator[Any, Any, int]:
        yield 3
        return 5


async def waits_for(error: BaseException | None) -> int:
    """Waits for a future that fails with ``error``; None: that is cancelled."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    loop.call_soon(*((future.set_exception, error) if error is not None else (future.cancel,)))
    return await future


@pytest.mark.parametrize(
    ("awaitable", "error"),
    [
        (lambda: waits_for(ConnectionRefusedError("nobody there")), "ConnectionRefusedError: nobody there"),
        (lambda: waits_for(None), "CancelledError: "),
        (lambda: waits_for(KeyboardInterrupt("mine")), "KeyboardInterrupt: mine"),
        (BadYield, "RuntimeError: Task got bad yield: 3"),
        (lambda: 3, "AttributeError: 'int' object has no attribute '__await__'"),
    ],
)
def test_what_it_waits_for_may_fail(awaitable: Callable[[], Any], error: str) -> None:
    async def scenario() -> None:
        with pytest.raises(Failed) as caught:
            await guarded_await(FOREIGN, awaitable())
        assert caught.value.error == error

    asyncio.run(scenario())


async def own_timeout() -> int:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
    except TimeoutError:
        await asyncio.sleep(0.01)
    return 5


async def swallows() -> int:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return 5
    return 6


async def fails_when_cancelled() -> int:
    try:
        await asyncio.sleep(60)
    finally:
        raise ValueError


@pytest.mark.parametrize("function", [lambda: asyncio.sleep(60), swallows, fails_when_cancelled])
def test_a_cancellation_from_outside_passes(function: Callable[[], Awaitable[int]]) -> None:
    async def scenario() -> None:
        assert await guarded_await(FOREIGN, own_timeout()) == 5
        task = asyncio.ensure_future(guarded_await(FOREIGN, function()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(scenario())


def test_a_coroutine_may_be_closed() -> None:
    waiting = guarded_await(FOREIGN, asyncio.Event().wait())

    async def scenario() -> None:
        waiting.send(None)

    asyncio.run(scenario())
    waiting.close()


async def failing_later(function: Callable[[], int]) -> int:
    await asyncio.sleep(0)
    return function()


def test_it_works_in_the_agents_own_loop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def scenario() -> None:
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1

        asyncio.get_running_loop().call_later(0.2, tick)
        with pytest.raises(Failed, match="more than 50 ms"):
            guarded(FOREIGN, loop)
        await asyncio.sleep(0.3)
        assert ticks == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
