"""Carries out a run's faults, in the run's own time, and writes each into the run's events."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from orchestrator.planning.faults import Step
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.events import EventLog


class FaultTargets(Protocol):
    """The nodes that it happens to."""

    def now_ns(self) -> int: ...

    async def crash(self, node: str) -> None:
        """Kill the node's agent: it says nothing to anyone, and what it knew is lost."""
        ...

    async def restart(self, node: str) -> None:
        """Start the agent of a node anew whose agent was killed."""
        ...

    async def silence(self, nodes: Collection[str]) -> None:
        """The radios of these nodes, and of no others, neither send nor receive; returns when it is so."""
        ...


async def inject_faults(steps: Sequence[Step], warmup: float, on: FaultTargets, events: EventLog) -> None:
    """Begin with the warm-up; returns after the last step."""
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
        events.add("fault", deed=step.action, node=step.node, t_ns=on.now_ns())


class FaultInjector:
    """The faults of a run in real time, beside all else that goes on in it."""

    def __init__(self, run: PlannedRun, on: FaultTargets, events: Path) -> None:
        self._steps = run.faults
        self._warmup = run.experiment.warmup
        self._on = on
        self._events = events
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """With the first time that the query flows. May be repeated."""
        if self._task is None and self._steps:
            faults = inject_faults(self._steps, self._warmup, self._on, EventLog(self._events))
            self._task = asyncio.create_task(faults, name="faults")

    def check(self) -> None:
        """Raises what went wrong with them, if anything did."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def end(self) -> None:
        """May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
