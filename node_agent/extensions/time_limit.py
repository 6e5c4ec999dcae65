"""Limits the time of a call to foreign code: interrupts an endless loop in Python, and a sleep.

The limit is on the processor time of this thread, so that an extension does not fail because the machine is
busy. ``WALL_FACTOR`` times as much may pass on the wall clock, so that code which only waits is interrupted
too. It works in the main thread, where Python handles signals; elsewhere calls are not limited.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

WALL_FACTOR = 20
MOST_INTERRUPTS = 2
"""How often a call is interrupted in the usual way."""


class OutOfTime(BaseException):
    """Raised inside the call. Not an Exception, so that ``except Exception`` of foreign code lets it pass."""


class Interrupted(KeyboardInterrupt):
    """A user interrupts the process during the call; foreign code that raises KeyboardInterrupt itself does
    not.
    """


def limited(seconds: float, call: Callable[[], T]) -> T:
    """Returns what ``call`` returns. Raises OutOfTime if it uses more than ``seconds`` of processor time."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    armed, tries = True, 0
    traced = sys.gettrace()
    cpu_end = time.thread_time() + seconds
    began = time.monotonic()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal tries
        out = time.thread_time() >= cpu_end or time.monotonic() - began >= WALL_FACTOR * seconds
        if armed and out:
            tries += 1
            if tries > MOST_INTERRUPTS and frame is not None:
                _interrupt_handlers_too(frame)
            raise OutOfTime

    handler = signal.signal(signal.SIGALRM, interrupt)
    # Where the process handles SIGINT itself, or a call surrounds this one, its handler stays.
    by_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if by_default:
        signal.signal(signal.SIGINT, _interrupted)
    # The timer repeats, for code that catches everything.
    before = signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 5)
    try:
        return call()
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        # A late alarm must not end the process, as it would by default (None: a handler not of Python).
        signal.signal(signal.SIGALRM, _late if handler in (signal.SIG_DFL, None) else handler)
        if by_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if tries > MOST_INTERRUPTS:
            sys.settrace(traced)
        if before[0]:  # restores another caller's timer
            passed = time.monotonic() - began
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, before[0] - passed), before[1])


def _late(number: int, frame: FrameType | None) -> None:
    """Does nothing."""


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def _interrupt_handlers_too(frame: FrameType) -> None:
    """Raises OutOfTime once more in the ``except`` block that catches the first one."""
    caught = False

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal caught
        if event == "line" and caught:
            raise OutOfTime
        caught = caught or event == "exception"
        return trace

    each: FrameType | None = frame
    while each is not None and each.f_code is not limited.__code__:
        each.f_trace = trace
        each = each.f_back
    sys.settrace(trace)
