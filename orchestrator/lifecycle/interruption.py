"""The user's request to stop, shared by everything that has to react to it.

The first SIGINT, SIGTERM or SIGHUP asks to stop in order, the second to tear down at once.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from orchestrator.runs.phases import Urgency


class Interruption:
    def __init__(self, on_change: Callable[[Urgency], None] = lambda urgency: None) -> None:
        self._reached = {Urgency.IN_ORDER: asyncio.Event(), Urgency.AT_ONCE: asyncio.Event()}
        self._on_change = on_change

    @property
    def urgency(self) -> Urgency:
        return max((level for level, event in self._reached.items() if event.is_set()), default=Urgency.NONE)

    def request(self) -> None:
        level = Urgency(min(self.urgency + 1, Urgency.AT_ONCE))
        self._reached[level].set()
        self._on_change(level)

    async def reaches(self, level: Urgency) -> None:
        await self._reached[level].wait()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Turns signals into requests to stop. Call it inside a running loop."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in _handled()}
        for number in before:
            loop.add_signal_handler(number, self.request)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


@contextmanager
def signals_as_keyboard_interrupt() -> Iterator[None]:
    """For work outside a loop: lets SIGTERM end it as Ctrl-C does, so that it releases what it holds."""
    before = {number: signal.getsignal(number) for number in _handled()}

    def raise_it(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, raise_it)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def lost_interrupts_raised() -> Iterator[Callable[[], None]]:
    """For work whose libraries may drop a KeyboardInterrupt: yields a function that raises it again if a
    signal raised one and the work still goes on. The end of the block raises it too.
    """
    handlers = {number: signal.getsignal(number) for number in _handled()}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread() or not before:
        yield lambda: None  # nothing interrupts this thread
        return
    raised = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        try:
            before[signal.Signals(number)](number, frame)
        except KeyboardInterrupt:
            raised = True
            raise

    def raise_lost() -> None:
        if raised:
            raise KeyboardInterrupt

    for number in before:
        signal.signal(number, note)
    try:
        yield raise_lost
        raise_lost()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def last_work() -> Iterator[list[int]]:
    """For the last work of a process, which no signal should break: yields a list of the signals that came.

    Afterwards they are ignored, so that none changes the exit code.
    """
    numbers = _handled()
    came: list[int] = []
    for number in numbers:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield came
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


def _handled() -> list[signal.Signals]:
    hang_up_is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as nohup wants it
    return [signal.SIGINT, signal.SIGTERM, *([] if hang_up_is_ignored else [signal.SIGHUP])]
