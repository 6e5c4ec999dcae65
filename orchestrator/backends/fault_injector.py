"""Injects a run's faults at their times, and what is done by hand; writes each into the run's events."""

import asyncio
from collections import defaultdict
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

LATE_S = 0.1
"""A step that begins so much after its time is called late in its event."""


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
        self._node_turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """A restart takes time: only who wants something of the same node waits for it."""
        self._down: set[str] = set()

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

    async def begin(self, fault: PlannedFault, due: float | None = None, **facts: Any) -> bool:
        """Lets the fault begin. Returns False if there is nothing in use that it could hit. ``due``: when it
        should, by the loop's clock; an event that comes late says so.
        """
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
            self._effects[fault.key] = fault, effect
            facts |= _lateness(due)
            try:
                await self._change_air()
            except BaseException:
                self._broke(fault, effect, facts)
                raise
        if effect.crashes is None:
            self._add(fault.kind, effect, facts)
            return True
        async with self._node_turns[effect.crashes]:
            facts |= _lateness(due)
            try:
                if effect.crashes not in self._down:
                    await self._on.crash(effect.crashes)
                    self._down.add(effect.crashes)
            except BaseException:
                self._broke(fault, effect, facts)
                raise
            self._add(fault.kind, effect, facts)
            return True

    async def end(self, key: str, due: float | None = None, **facts: Any) -> bool:
        """Ends the fault. Returns False if it does not hold. While another one does the same to the same,
        nothing ends, and no event says so.
        """
        async with self._turn:
            if key not in self._effects:
                return False
            fault, effect = self._effects.pop(key)
            facts |= _lateness(due)
            await self._change_air()
            if effect.crashes is None:
                self._ended(fault, effect, facts)
                return True
        async with self._node_turns[effect.crashes]:
            facts |= _lateness(due)
            wanted_down = any(other.crashes == effect.crashes for _, other in self._effects.values())
            if effect.crashes in self._down and not wanted_down:
                await self._on.restart(effect.crashes)
                self._down.discard(effect.crashes)
            self._ended(fault, effect, facts)
            return True

    def _ended(self, fault: PlannedFault, effect: Effect, facts: Mapping[str, Any]) -> None:
        left = [(other.kind, theirs.subject) for other, theirs in self._effects.values()]
        if (fault.kind, effect.subject) not in left:
            self._add(ENDED_BY[fault.kind], effect, facts)

    def _broke(self, fault: PlannedFault, effect: Effect, facts: Mapping[str, Any]) -> None:
        self._effects.pop(fault.key, None)
        self._add(fault.kind, effect, {**facts, "failed": True})  # some of it may have been done

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


def _lateness(due: float | None) -> dict[str, float]:
    late_s = 0.0 if due is None else asyncio.get_running_loop().time() - due
    return {"late_s": round(late_s, 3)} if late_s >= LATE_S else {}


async def inject_faults(steps: Sequence[Step], warmup: float, active: ActiveFaults) -> None:
    """Carries out each step at its time. Call it when the warm-up begins; it returns when all are done.

    A step that takes long, as a restart may, delays only those about the same node.
    """
    loop = asyncio.get_running_loop()
    measured_from = loop.time() + warmup
    try:
        async with asyncio.TaskGroup() as under_way:
            for step in steps:
                due = measured_from + step.at
                await asyncio.sleep(max(0.0, due - loop.time()))
                fault = step.fault
                deed = active.begin(fault, due) if step.begins else active.end(fault.key, due)
                under_way.create_task(deed, name=f"fault {fault.key}")
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


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
