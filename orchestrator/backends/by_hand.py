"""What a user does to a network that is up, with `rove set`: in the words and with the checks of faults."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from orchestrator.backends.fault_injector import ActiveFaults
from orchestrator.errors import BadInput
from orchestrator.planning.application import AppPlan
from orchestrator.planning.faults import PlannedFault, effect_of
from orchestrator.runs.outages import in_words
from orchestrator.spec.backends import Traits
from orchestrator.spec.faults import Fault
from orchestrator.spec.problems import Finding, Problem, dotted
from orchestrator.spec.topology import Topology
from orchestrator.spec.translate import findings_of

RESTORE = "restore"
MOST_AT_ONCE = 256


class ByHand:
    """Implements ``runs.backend.Interventions``. ``plans``: none where no agents run. ``why_not``: why
    nothing can be changed now; empty: it can.
    """

    def __init__(
        self,
        active: ActiveFaults,
        topology: Topology,
        plans: Mapping[str, AppPlan],
        traits: Traits,
        why_not: Callable[[], str],
    ) -> None:
        self._active = active
        self._topology = topology
        self._plans = plans
        self._traits = traits
        self._why_not = why_not
        self._numbers = count(1)
        self._done: dict[str, tuple[str, str]] = {}
        """Kind and subject of what holds, by key."""
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def set(self, wanted: Mapping[str, Any], by: str) -> str:
        if why_not := "the run is about to end" if self._closed else self._why_not():
            raise BadInput(why_not)
        if RESTORE in wanted:
            return await self._restore(wanted[RESTORE], by)
        fault = _fault(wanted)
        if fault.kind != "crash" and not self._traits.changes_air:
            raise BadInput(f"{fault.kind}: the air is not emulated here, so that nobody can change it")
        if fault.kind == "crash" and not self._plans:
            raise BadInput("crash: no agents run on a network without a run")
        does = effect_of(fault, self._topology, self._plans)
        if isinstance(does, list):
            raise _refused(does)
        planned = PlannedFault(f"by hand {next(self._numbers)}", fault.kind, does)
        self._check_new(planned)
        if not await self._active.begin(planned, by=by):
            raise BadInput(f"{fault.kind}: no replica is in use that it could hit")
        subject = self._active.subject(planned.key)
        self._done[planned.key] = fault.kind, subject
        if fault.seconds is not None and not self._closed:
            self._ending[planned.key] = asyncio.create_task(self._end_after(fault.seconds, planned.key, by))
        until = "" if fault.seconds is None else f", for {fault.seconds:g} s"
        return f"{in_words(fault.kind, subject, ())}{until}"

    async def close(self) -> None:
        """Changes nothing from now on: what was done stays, also what would have ended later. May be
        repeated.
        """
        self._closed = True
        tasks = list(self._ending.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _check_new(self, planned: PlannedFault) -> None:
        if len(self._done) >= MOST_AT_ONCE:
            raise BadInput(f"{MOST_AT_ONCE} changes by hand hold already: restore some")
        if (planned.kind, planned.subject) in self._done.values():
            raise BadInput(f"{in_words(planned.kind, planned.subject, ())} already: restore it first")

    async def _restore(self, nodes: Any, by: str) -> str:
        if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
            raise BadInput(f"{RESTORE}: expected a list of nodes")
        names = self._topology.node_names
        if unknown := [node for node in nodes if node not in names]:
            raise BadInput(f"there is no node {unknown[0]!r}")
        keys = [key for key in self._done if not nodes or self._active.touches(key, nodes)]
        if not keys:
            whom = f" to {' and '.join(nodes)}" if nodes else ""
            raise BadInput(f"nothing that was done by hand{whom} holds: there is nothing to restore")
        ended = [in_words(*self._done[key], ()) for key in keys]
        for key in keys:
            await self._end(key, by)
        return f"restored: {'; '.join(ended)}"

    async def _end_after(self, seconds: float, key: str, by: str) -> None:
        await asyncio.sleep(seconds)
        await self._end(key, by)

    async def _end(self, key: str, by: str) -> None:
        if self._done.pop(key, None) is None:
            return  # somebody else has just done it
        task = self._ending.get(key)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        await self._active.end(key, by=by)
        self._ending.pop(key, None)


def _fault(wanted: Mapping[str, Any]) -> Fault:
    document = {**wanted, "at": 0}
    try:
        fault: Fault = Fault.model_validate(document)
        return fault
    except ValidationError as error:
        raise _refused(findings_of(error, Fault, document)) from None


def _refused(findings: Sequence[Finding]) -> BadInput:
    found = [str(Problem(dotted(each.at), each.message, each.hint)).strip() for each in findings]
    return BadInput("\n".join(found))
