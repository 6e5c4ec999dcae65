"""An asyncio event loop in virtual time: the clock stands while callbacks run and jumps from event to event.

Time is counted in whole nanoseconds. Events of one instant run in the order in which they were scheduled, so
the same program gives the same run. The loop never waits, and offers no sockets and no threads.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVar, TypeVarTuple

NS = 1_000_000_000
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_NEVER = 1 << 200
_COMPACT_FROM = 256


class VirtualTimeError(Exception):
    """Base of errors of virtual time itself."""


class Deadlock(VirtualTimeError):
    """A task waits, and nothing is left that could wake it."""


class UnhandledErrors(BaseExceptionGroup):
    """Exceptions that nobody handled. They end the run instead of vanishing in a log."""


class VirtualHandle(asyncio.TimerHandle):
    """A scheduled callback that can be cancelled. Holds only what this loop reads, because
    creating handles takes much of a run's time."""

    __slots__ = ()
    _callback: Callable[..., object] | None
    _context: Context
    _loop: "VirtualLoop"
    _when: int
    _scheduled: bool

    def __init__(
        self,
        when_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
        loop: "VirtualLoop",
    ) -> None:
        self._when = when_ns
        self._callback = callback
        self._args = args
        self._context = context
        self._loop = loop
        self._cancelled = False
        self._scheduled = False

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._callback = None
            self._args = ()
            if self._scheduled:
                self._loop._timer_cancelled()

    def _run(self) -> None:
        if self._callback is not None:
            self._context.run(self._callback, *self._args)

    def when(self) -> float:
        return self._when / NS

    def __repr__(self) -> str:
        state = "cancelled" if self._cancelled else repr(self._callback)
        return f"<{type(self).__name__} at {self._when} ns: {state}>"


Ready = tuple[Callable[..., object], tuple[Any, ...]]
Timer = tuple[int, int, Callable[..., object], tuple[Any, ...], VirtualHandle | None]
"""When, a number that keeps timers of one instant in order, what to call, and the handle if there is one."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Use it like any loop (``asyncio.Runner(loop_factory=VirtualLoop)``), or step it with run_until_ns."""

    _ready: deque[Ready]
    _stopping: bool
    _closed: bool
    _exception_handler: Callable[..., object] | None

    def __init__(self) -> None:
        self._now_ns = 0
        self._timers: list[Timer] = []
        self._sequence = 0
        self._cancelled_timers = 0
        self._horizon_ns: int | None = None
        self._errors: list[BaseException] = []
        super().__init__()

    def now_ns(self) -> int:
        return self._now_ns

    def time(self) -> float:
        return self._now_ns / NS

    def call_at_ns(self, when_ns: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Schedules a callback at the least cost: it cannot be cancelled
        and has no context. A past time means now."""
        if self._closed:
            raise RuntimeError("the event loop is closed")
        if when_ns <= self._now_ns:
            self._ready.append((callback, args))
        else:
            self._sequence += 1
            heappush(self._timers, (when_ns, self._sequence, callback, args, None))

    def free_until_ns(self) -> int:
        """Returns up to when, inclusive, nothing else happens: a callback may act until then as if it had
        been woken again and again, and saves the way through the loop.
        """
        if self._ready or self._stopping or self._errors:
            return self._now_ns
        horizon = _NEVER if self._horizon_ns is None else self._horizon_ns
        if self._timers and self._timers[0][0] <= horizon:
            return self._timers[0][0] - 1
        return horizon

    def jump_to_ns(self, when_ns: int) -> None:
        """Moves the clock on, not further than ``free_until_ns``."""
        self._now_ns = when_ns

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> VirtualHandle:
        # Exact for times made from time(): a float distinguishes every nanosecond of the first three weeks.
        when_ns = _NEVER if when == math.inf else round(when * NS)
        return self._schedule(
            VirtualHandle(when_ns, callback, args, copy_context() if context is None else context, self)
        )

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> VirtualHandle:
        when_ns = _NEVER if delay == math.inf else self._now_ns + round(delay * NS)
        return self._schedule(
            VirtualHandle(when_ns, callback, args, copy_context() if context is None else context, self)
        )

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> VirtualHandle:
        if self._closed:
            raise RuntimeError("the event loop is closed")
        handle = VirtualHandle(
            self._now_ns, callback, args, copy_context() if context is None else context, self
        )
        self._ready.append((handle._run, ()))
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> VirtualHandle:
        """Schedules a callback, for signal handlers. Other threads cannot wake a loop that never waits."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        raise VirtualTimeError("a thread lives in real time: it cannot be waited for in virtual time")

    def run_until_ns(self, when_ns: int) -> None:
        """Runs every event up to and including ``when_ns``; then the clock shows exactly that time."""
        if when_ns < self._now_ns:
            raise ValueError(f"cannot go back from {self._now_ns} ns to {when_ns} ns")
        self._horizon_ns = when_ns
        try:
            self.run_forever()
        finally:
            self._horizon_ns = None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._exception_handler is not None or self.is_closed():
            super().call_exception_handler(context)
        else:
            self._errors.append(context.get("exception") or VirtualTimeError(context["message"]))

    def close(self) -> None:
        super().close()
        self._timers.clear()
        self._raise_errors()

    def __del__(self) -> None:
        """Gives no warning for a loop that was not closed: it holds nothing of the operating system."""

    def _schedule(self, handle: VirtualHandle) -> VirtualHandle:
        if self._closed:
            raise RuntimeError("the event loop is closed")
        when_ns = handle._when
        if when_ns <= self._now_ns:
            self._ready.append((handle._run, ()))
        elif when_ns != _NEVER:
            handle._scheduled = True
            self._sequence += 1
            heappush(self._timers, (when_ns, self._sequence, handle._run, (), handle))
        return handle

    def _timer_cancelled(self) -> None:
        self._cancelled_timers += 1
        if self._cancelled_timers > _COMPACT_FROM and self._cancelled_timers * 2 > len(self._timers):
            # In place: _run_once holds a reference to the list.
            self._timers[:] = [timer for timer in self._timers if timer[4] is None or not timer[4]._cancelled]
            heapify(self._timers)
            self._cancelled_timers = 0

    def _run_once(self) -> None:
        """Handles as many instants as it can in one call; run_forever calls it until stopped."""
        ready, timers = self._ready, self._timers
        while not self._stopping:
            if not ready and not self._advance(timers):
                break
            for _ in range(len(ready)):
                callback, args = ready.popleft()
                try:
                    callback(*args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    message = f"unhandled exception in {callback!r}"
                    self.call_exception_handler({"message": message, "exception": error})
            if self._errors:
                self._raise_errors()

    def _advance(self, timers: list[Timer]) -> bool:
        """Moves the clock to the next instant and makes its timers ready. Returns False at the horizon."""
        while timers and (handle := timers[0][4]) is not None and handle._cancelled:
            heappop(timers)
            self._cancelled_timers -= 1
        horizon = self._horizon_ns
        if not timers and horizon is None:
            self._raise_deadlock()
        if not timers or (horizon is not None and timers[0][0] > horizon):
            self._now_ns = horizon  # type: ignore[assignment]
            self._stopping = True
            return False
        self._now_ns = now = timers[0][0]
        while timers and timers[0][0] == now:
            _, _, callback, args, handle = heappop(timers)
            if handle is not None:
                handle._scheduled = False
                if handle._cancelled:
                    self._cancelled_timers -= 1
                    continue
            self._ready.append((callback, args))
        return True

    def _raise_deadlock(self) -> NoReturn:
        names = sorted(task.get_name() for task in asyncio.all_tasks(self))
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise Deadlock(f"at {self._now_ns} ns nothing is left to run, but {len(names)} tasks wait: {shown}")

    def _raise_errors(self) -> None:
        if self._errors:
            errors, self._errors = self._errors, []
            raise UnhandledErrors(f"unhandled at {self._now_ns} ns", errors)
