"""Writes into a run's events what changes while it goes on: states of nodes, their clocks, the radio."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from orchestrator.runs.backend import ClockSeen, NodeOutcome, RadioSeen, Seen, Status
from orchestrator.runs.events import EventLog

LOOK_S = 1.0
CLOCK_S = 10.0
RADIO_S = 5.0
"""The shortest time between two events about the same clock, and about the radio."""


class Watched(Protocol):
    """The part of a backend that is looked at."""

    def now_ns(self) -> int: ...

    def seen(self) -> Seen: ...


class Monitor:
    """Looks at a backend every second. Errors of looking do not concern the run."""

    def __init__(self, backend: Watched, events: EventLog, now: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._events = events
        self._now = now
        self._states: dict[str, NodeOutcome] = {}
        self._clocks: dict[str, tuple[float, ClockSeen]] = {}
        self._radio: tuple[float, RadioSeen] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look. Further calls do nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_looking(), name="monitor")

    async def close(self) -> None:
        """Looks no more. May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def look(self) -> None:
        """Writes an event for each thing that has changed since the last look."""
        seen = self._backend.seen()
        t_ns = self._backend.now_ns()
        for outcome in seen.nodes:
            self._see_node(outcome, t_ns)
        for node, clock in seen.clocks.items():
            self._see_clock(node, clock, t_ns)
        if seen.radio is not None:
            self._see_radio(seen.radio, t_ns)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self.look()
            except Exception as error:  # a backend of another package, a full disk: the run itself goes on
                with suppress(OSError):
                    self._events.add("monitor", error=f"{type(error).__name__}: {error}")
                return

    def _see_node(self, now: NodeOutcome, t_ns: int) -> None:
        before = self._states.get(now.node, NodeOutcome(now.node, Status.OK))
        self._states[now.node] = now
        # The reason of an unreachable node says for how long: it changes every second.
        same_reason = now.reason == before.reason or now.status is Status.UNREACHABLE
        if now.status is not before.status or not same_reason:
            self._events.add("node", node=now.node, status=now.status, reason=now.reason, t_ns=t_ns)

    def _see_clock(self, node: str, clock: ClockSeen, t_ns: int) -> None:
        written, before = self._clocks.get(node, (-CLOCK_S, None))
        if clock != before and self._now() - written >= CLOCK_S:
            self._clocks[node] = self._now(), clock
            self._events.add(
                "clock",
                node=node,
                offset_ms=round(clock.offset_ns / 1e6, 3),
                uncertainty_ms=round(clock.uncertainty_ns / 1e6, 3),
                t_ns=t_ns,
            )

    def _see_radio(self, radio: RadioSeen, t_ns: int) -> None:
        written, before = self._radio or (-RADIO_S, None)
        if radio != before and self._now() - written >= RADIO_S:
            self._radio = self._now(), radio
            late, p99 = round(radio.late_ratio, 6), round(radio.p99_us, 1)
            self._events.add("radio", late_ratio=late, p99_us=p99, t_ns=t_ns)
