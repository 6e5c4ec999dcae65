"""Calls foreign code so that it can neither stop nor stall the process.

If it raises, returns a wrong answer or takes too long, this is counted, and the caller's own answer is used.
An extension that fails ``MOST_IN_A_ROW`` times without a success in between is not called any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeVar

from node_agent.extensions.errors import ExtensionError, definition, failing_line
from node_agent.extensions.failures import Failures
from node_agent.extensions.time_limit import Interrupted, OutOfTime, limited

T = TypeVar("T")

LIMIT_S = 0.05
"""Processor time of one call."""
MOST_IN_A_ROW = 10
_LONGEST = 200


class Foreign(NamedTuple):
    """An extension that others wrote: its kind, its name, its file, and the line that defines it."""

    what: str
    name: str
    file: str | None = None
    defined: str = ""

    @classmethod
    def of(cls, what: str, name: str, value: object) -> "Foreign":
        """``value``: the function or class that is called."""
        return cls(what, name, *definition(value))


class Failed(Exception):
    """Foreign code raised, took too long, or returned a wrong answer. ``place``: its file and line."""

    def __init__(self, place: str, error: str) -> None:
        super().__init__(f"{place}: {error}" if place else error)
        self.place = place
        self.error = error


class Guard:
    """Calls one extension, and adds its failures to ``failures``."""

    def __init__(self, foreign: Foreign, failures: Failures) -> None:
        self.foreign = foreign
        self._failures = failures
        self._in_a_row = 0

    @property
    def left_out(self) -> bool:
        return self._in_a_row >= MOST_IN_A_ROW

    def call(self, function: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Returns what ``function`` returns; what ``otherwise`` returns if it fails, or has failed too
        often.
        """
        if self.left_out:
            return otherwise()
        try:
            result = guarded(self.foreign, function)
        except Failed as failed:
            self.failed(failed)
            return otherwise()
        self.succeeded()
        return result

    def failed(self, failed: Failed) -> None:
        self._in_a_row += 1
        self._failures.add(self.foreign.what, self.foreign.name, failed.place, failed.error, self.left_out)

    def succeeded(self) -> None:
        self._in_a_row = 0


def guarded(foreign: Foreign, function: Callable[[], T], seconds: float = LIMIT_S) -> T:
    """Returns what ``function`` returns. Raises Failed for any error inside; only a user's interrupt passes.

    ``function`` raises an ExtensionError for a wrong answer of the extension.
    """
    try:
        return limited(seconds, function)
    except Interrupted:
        raise
    except BaseException as error:
        raise _failed(foreign, error, seconds) from error


def _failed(foreign: Foreign, error: BaseException, seconds: float) -> Failed:
    if isinstance(error, ExtensionError):
        return Failed(foreign.defined, str(error)[:_LONGEST])
    place = failing_line(error, foreign.file) or foreign.defined
    if isinstance(error, OutOfTime):
        return Failed(place, f"it takes more than {seconds * 1e3:g} ms")
    try:  # the exception's __str__ is foreign code as well
        text = limited(LIMIT_S, lambda: str(error))
    except BaseException:
        text = "its message cannot be shown"
    return Failed(place, f"{type(error).__name__}: {text}"[:_LONGEST])


async def guarded_await(foreign: Foreign, awaitable: Awaitable[T], seconds: float = LIMIT_S) -> T:
    """The same for a coroutine: limits each of its steps from one ``await`` to the next.

    A cancellation of the task passes, whatever the coroutine makes of it.
    """
    return await _Stepwise(foreign, awaitable, seconds)


class _Done(NamedTuple):
    result: Any


class _Stepwise(Awaitable[T]):
    def __init__(self, foreign: Foreign, awaitable: Awaitable[T], seconds: float) -> None:
        self._foreign = foreign
        self._awaitable = awaitable
        self._seconds = seconds

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = None
        thrown: BaseException | None = None
        cancellation: asyncio.CancelledError | None = None

        def step() -> Any:
            nonlocal steps
            try:
                if steps is None:
                    steps = self._awaitable.__await__()
                return next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as end:
                return _Done(end.value)

        while True:
            try:
                waits_for = guarded(self._foreign, step, self._seconds)
            except Failed:
                _pass_on(thrown, cancellation)
                raise
            if isinstance(waits_for, _Done):
                _pass_on(thrown, cancellation)
                return waits_for.result  # type: ignore[no-any-return]
            if isinstance(thrown, GeneratorExit):
                raise thrown  # it is not awaited any more, even if it waits again
            try:
                thrown = None
                yield waits_for
            except BaseException as error:
                thrown = error  # of what it waits for, or from outside
                if isinstance(error, asyncio.CancelledError):
                    cancellation = error


def _pass_on(thrown: BaseException | None, cancellation: asyncio.CancelledError | None) -> None:
    """Raises what came from outside: the end of the coroutine, or a cancellation of the task.

    What the coroutine waits for may be cancelled too; then nobody has asked to cancel the task.
    """
    if isinstance(thrown, GeneratorExit):
        raise thrown from None
    if cancellation is not None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise cancellation from None
