"""Injects a run's faults at their times and writes each into the run's events."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from orchestrator.planning.faults import Step
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.events import EventLog


class FaultTargets(Protocol):
    """The nodes of a backend, as far as faults act on them."""

    def now_ns(self) -> int: ...

    async def crash(self, node: str) -> None:
        """Kills the node's agent: it sends nothing more and loses its state."""
        ...

    async def restart(self, node: str) -> None:
        """Starts a new agent on a node whose agent was killed."""
        ...

    async def silence(self, nodes: Collection[str]) -> None:
        """Switches off the radios of exactly these nodes, all others on; returns when it is done."""
        ...


async def inject_faults(steps: Sequence[Step], warmup: float, on: FaultTargets, events: EventLog) -> None:
    """Carries out the steps. Call it when the warm-up begins; it returns after the last step."""
    loop = asyncio.get_running_loop()
    measured_from = loop.time() + warmup
    silent: dict[str, None] = {}
    for step in steps:
        await asyncio.sleep(max(0.0, measured_from + step.at - loop.time()))
        match step.action:
            case "crash":
                await on.crash(step.node)
            case "restart":
                await on.restart(step.node)
            case "silence":
                silent[step.node] = None
                await on.silence(tuple(silent))
            case "unsilence":
                del silent[step.node]
                await on.silence(tuple(silent))
        events.add("fault", action=step.action, node=step.node, t_ns=on.now_ns())


class FaultInjector:
    """Injects the faults of a run in real time, in a task of its own."""

    def __init__(self, run: PlannedRun, on: FaultTargets, events: Path) -> None:
        self._steps = run.faults
        self._warmup = run.experiment.warmup
        self._on = on
        self._events = events
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Starts the task. Call it when the sources open; further calls do nothing."""
        if self._task is None and self._steps:
            faults = inject_faults(self._steps, self._warmup, self._on, EventLog(self._events))
            self._task = asyncio.create_task(faults, name="faults")

    def check(self) -> None:
        """Raises the error of the task, if it failed."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def end(self) -> None:
        """Cancels the task. May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
