"""Runs an AODV core on an event loop: performs its actions and wakes it when it asks for it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from node_agent.aodv.actions import Action
from node_agent.aodv.core import NEVER_NS, Aodv

P = TypeVar("P")


class Driver(Generic[P]):
    """Works on the OS and in virtual time. ``now_ns`` must be the clock that the core uses."""

    def __init__(
        self, core: Aodv[P], now_ns: Callable[[], int], perform: Callable[[Sequence[Action[P]]], None]
    ) -> None:
        self._core = core
        self._now_ns = now_ns
        self._perform = perform
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = NEVER_NS
        self._running = False

    def start(self) -> None:
        self._running = True
        self.carry_out(())

    def stop(self) -> None:
        self._running = False
        if self._timer is not None:
            self._timer.cancel()

    def carry_out(self, actions: Sequence[Action[P]]) -> None:
        """Performs the actions that a call of the core returned. Call it after every call of the core."""
        if self._running:
            self._perform(actions)
            self._rearm()

    def _rearm(self) -> None:
        due_ns = self._core.next_wake_ns()
        if due_ns == self._timer_ns:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ns = due_ns
        if due_ns < NEVER_NS:
            delay = max(0, due_ns - self._now_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        self._timer_ns = NEVER_NS
        self._timer = None
        self.carry_out(self._core.wake(self._now_ns()))
