"""Injects a run's faults at their times, and what is done by hand; writes each into the run's events."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from node_agent.telemetry.metrics import Sample
from orchestrator.planning.application import AppPlan, InUse
from orchestrator.planning.fault_effects import Effect, on_node
from orchestrator.planning.faults import PlannedFault, Step
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.changes import UNCHANGED, AirChanges, joined
from orchestrator.runs.backend import NodeNotSeen
from orchestrator.runs.events import EventLog
from orchestrator.runs.outages import ENDED_BY


class FaultTargets(Protocol):
    """The nodes of a backend, as far as faults act on them."""

    def now_ns(self) -> int: ...

    async def crash(self, node: str) -> None:
        """Kills the node's agent: it sends nothing more and loses its state."""
        ...

    async def restart(self, node: str) -> None:
        """Starts a new agent on a node whose agent was killed."""
        ...

    async def change_air(self, changes: AirChanges) -> None:
        """Lets exactly these changes hold from now on; returns when it is done."""
        ...

    async def metrics(self, node: str) -> Sequence[Sample]:
        """Returns what the node's agent reports now. Raises NodeNotSeen."""
        ...


class ActiveFaults:
    """The faults that hold at this moment. Two may hit one node: it is well when both have ended."""

    def __init__(self, on: FaultTargets, apps: Mapping[str, AppPlan], events: EventLog) -> None:
        self._on = on
        self._apps = apps
        self._events = events
        self._effects: dict[str, tuple[PlannedFault, Effect]] = {}
        self._air: AirChanges | None = UNCHANGED  # None: not known, because a change failed
        self._turn = asyncio.Lock()

    @property
    def keys(self) -> Sequence[str]:
        """Those that hold, the oldest first."""
        return tuple(self._effects)

    def subject(self, key: str) -> str:
        return self._effects[key][1].subject

    def touches(self, key: str, nodes: Sequence[str]) -> bool:
        """Whether the fault is about exactly these nodes."""
        _, effect = self._effects[key]
        named = {effect.crashes} - {None} | {*effect.air.silent, *effect.air.places}
        named |= {node for link in effect.air.links for node in (link.one, link.other)}
        named |= {node for split in effect.air.splits for group in split for node in group}
        return named == set(nodes)

    async def begin(self, fault: PlannedFault, **facts: Any) -> bool:
        """Lets the fault begin. Returns False if there is nothing in use that it could hit."""
        async with self._turn:
            effect = fault.does
            if isinstance(effect, InUse):
                part = await self._part_in_use(effect)
                if part is None:
                    text = f"no replica of {effect.what} was in use"
                    self._events.add("fault_missed", action=fault.kind, reason=text, t_ns=self._on.now_ns())
                    return False
                facts["in_use"] = part
                effect = on_node(fault.kind, effect.parts[part])
            crashed = self._crashed()
            self._effects[fault.key] = fault, effect
            try:
                await self._change_air()
                if effect.crashes is not None and effect.crashes not in crashed:
                    await self._on.crash(effect.crashes)
            except BaseException:
                del self._effects[fault.key]
                self._add(fault.kind, effect, {**facts, "failed": True})  # some of it may have been done
                raise
            self._add(fault.kind, effect, facts)
            return True

    async def end(self, key: str, **facts: Any) -> bool:
        """Ends the fault. Returns False if it does not hold. While another one does the same to the same,
        nothing ends, and no event says so.
        """
        async with self._turn:
            if key not in self._effects:
                return False
            fault, effect = self._effects.pop(key)
            await self._change_air()
            if effect.crashes is not None and effect.crashes not in self._crashed():
                await self._on.restart(effect.crashes)
            left = [(other.kind, theirs.subject) for other, theirs in self._effects.values()]
            if (fault.kind, effect.subject) not in left:
                self._add(ENDED_BY[fault.kind], effect, facts)
            return True

    def _crashed(self) -> list[str | None]:
        return [effect.crashes for _, effect in self._effects.values()]

    async def _change_air(self) -> None:
        air = joined(effect.air for _, effect in self._effects.values())
        if air != self._air:
            self._air = None
            await self._on.change_air(air)
            self._air = air

    def _add(self, action: str, effect: Effect, facts: Mapping[str, Any]) -> None:
        self._events.add("fault", action=action, node=effect.subject, t_ns=self._on.now_ns(), **facts)

    async def _part_in_use(self, sought: InUse) -> str | None:
        plan = self._apps[sought.app]
        nodes = plan.nodes()
        samples = await asyncio.gather(*map(self._samples, nodes))
        return plan.in_use(sought.what, dict(zip(nodes, samples, strict=True)))

    async def _samples(self, node: str) -> Sequence[Sample]:
        try:
            return await self._on.metrics(node)
        except NodeNotSeen:
            return ()


async def inject_faults(steps: Sequence[Step], warmup: float, active: ActiveFaults) -> None:
    """Carries out the steps. Call it when the warm-up begins; it returns after the last step."""
    loop = asyncio.get_running_loop()
    measured_from = loop.time() + warmup
    for step in steps:
        await asyncio.sleep(max(0.0, measured_from + step.at - loop.time()))
        if step.begins:
            await active.begin(step.fault)
        else:
            await active.end(step.fault.key)


class FaultInjector:
    """Injects the faults of a run in real time, in a task of its own."""

    def __init__(self, run: PlannedRun, on: FaultTargets, events: Path) -> None:
        self._steps = run.faults
        self._warmup = run.experiment.warmup
        self.active = ActiveFaults(on, run.apps, EventLog(events))
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Starts the task. Call it when the sources open; further calls do nothing."""
        if self._task is None and self._steps:
            faults = inject_faults(self._steps, self._warmup, self.active)
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
