"""A backend that does what a test tells it, and writes the telemetry that real agents would."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from node_agent.apps.dataflow.events import SpillSample
from node_agent.model.refusals import Refusal
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segment_log import SegmentLog
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend, NodeNotSeen, NodeOutcome, Outcomes, Progress, Seen, Status
from orchestrator.runs.journal import Journal

Step = Callable[["ScriptedBackend"], Awaitable[Outcomes | None]]
"""Replaces a call: returns its outcomes, or None for those of a sound one."""


class ScriptedBackend:
    def __init__(self, run: PlannedRun, run_id: str, directory: Path, script: dict[str, Step]) -> None:
        self.nodes = run.experiment.topology.node_names
        self.calls: list[str] = []
        self.found: dict[str, Any] = {}
        self._script = script
        self._now_ns = 0
        self._logs = [
            SegmentLog(directory / "nodes" / node / "segments", run_id, node, self.now_ns)
            for node in self.nodes
        ]

    def now_ns(self) -> int:
        return self._now_ns

    async def up(self, progress: Progress) -> Outcomes:
        for log in self._logs:
            log.append(AgentStart("0", "virtual", ()))
        return await self._play("up")

    async def converge(self) -> Outcomes:
        self._now_ns += 1_000_000_000
        return await self._play("converge")

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        outcomes = await self._play("advance")
        for log in self._logs:
            log.append(SpillSample(0, 0, None))
        self._now_ns += round(seconds * 1e9)
        progress(1.0)
        return outcomes

    def seen(self) -> Seen:
        return Seen([NodeOutcome(node, Status.OK) for node in self.nodes])

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        raise NodeNotSeen(f"{node} has no metrics")

    def remote_records(self) -> None:
        return None

    async def stop(self) -> Outcomes:
        outcomes = await self._play("stop")
        for log in self._logs:
            log.append(AgentStop("end of run"))
            log.close()
        return outcomes

    async def collect(self, into: Path) -> Outcomes:
        return await self._play("collect")

    def doubts(self) -> Sequence[str]:
        return ()

    def refusals(self) -> Sequence[Refusal]:
        return ()

    def facts(self) -> Mapping[str, Any]:
        return self.found

    async def down(self) -> None:
        await self._play("down")

    async def _play(self, name: str) -> Outcomes:
        self.calls.append(name)
        step = self._script.get(name)
        outcomes = await step(self) if step else None
        return [NodeOutcome(node, Status.OK) for node in self.nodes] if outcomes is None else outcomes


class Stage:
    """Makes scripted backends and keeps them, so that a test can look at what was called."""

    def __init__(self, **script: Step) -> None:
        self.script = script
        self.made: list[ScriptedBackend] = []

    def __call__(self, run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
        backend = ScriptedBackend(run, run_id, directory, self.script)
        self.made.append(backend)
        return backend


async def forever(backend: ScriptedBackend) -> None:
    await asyncio.Event().wait()


async def broken(backend: ScriptedBackend) -> None:
    raise ValueError("out of luck")


async def without_the_last(backend: ScriptedBackend) -> Outcomes:
    *most, last = backend.nodes
    return [*(NodeOutcome(node, Status.OK) for node in most), NodeOutcome(last, Status.FAILED, "no power")]
