"""One run from plan to verdict: drives a backend through the phases and records each result."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from node_agent.extensions.files import short_name
from orchestrator.errors import RoveError
from orchestrator.lifecycle.bounded import PhaseInterrupted, TimeLimit, bounded
from orchestrator.lifecycle.examination import Examined, agent_crashes, examine
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.monitor import Monitor
from orchestrator.planning.planned import PlannedRun
from orchestrator.planning.settling import unsettled_note
from orchestrator.runs import manifest, processes
from orchestrator.runs.backend import Backend, NodeOutcome, Outcomes, Patient, Status
from orchestrator.runs.checkout import checkout
from orchestrator.runs.durable import sync_tree
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import read_lines, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.outages import interventions
from orchestrator.runs.phases import (
    Ending,
    Phase,
    PhaseResult,
    advance_timeout,
    complete,
    interrupted_by,
    is_wanted,
    judge,
    virtual_timeout,
)
from orchestrator.runs.refused import by_orchestrator
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict, judge_run

ALL_NODES = 1.0
PLAN_TIMEOUT_S = 60.0

CreateBackend = Callable[[PlannedRun, str, Path, Journal], Backend]
Observer = Callable[[Phase, float], None]
"""Called with the run's phase and the fraction of that phase that is done."""
Watch = Callable[[Backend, RunDirectory], AbstractAsyncContextManager[None]]
"""Lets others watch the run: entered when its backend is made, left before the backend is taken down."""
WATCH_TIMEOUT_S = 5.0


@asynccontextmanager
async def unwatched(backend: Backend, directory: RunDirectory) -> AsyncIterator[None]:
    yield


@dataclass(frozen=True)
class RunOrder:
    """What to run, and what to record about it."""

    run: PlannedRun
    factors: dict[str, Any]
    invocation: str
    command: list[str]
    quorum: float = ALL_NODES


class Run:
    def __init__(
        self,
        order: RunOrder,
        directory: RunDirectory,
        journal: Journal,
        create_backend: CreateBackend,
        interruption: Interruption,
        observe: Observer,
        watch: Watch = unwatched,
    ) -> None:
        self._order = order
        self._run = order.run
        self._experiment = order.run.experiment
        self._directory = directory
        self._journal = journal
        self._create_backend = create_backend
        self._interruption = interruption
        self._observe = observe
        self._watch = watch
        self._watchers = AsyncExitStack()
        self._monitor: Monitor | None = None
        self._events = EventLog(directory.events)
        self._backend: Backend | None = None
        self._manifest: dict[str, Any] = {}
        self._up_ns: int | None = None
        self._checkout: dict[str, Any] | None = None

    async def execute(self) -> Verdict:
        history: list[PhaseResult] = []
        work: dict[Phase, Callable[[], Coroutine[Any, Any, Outcomes]]] = {
            Phase.PLAN: self._plan,
            Phase.UP: self._up,
            Phase.CONVERGE: self._converge,
            Phase.WARM_UP: self._warm_up,
            Phase.MEASURE: self._measure,
            Phase.STOP: self._stop,
            Phase.COLLECT: self._collect,
            Phase.DOWN: self._down,
        }
        try:
            for phase, perform in work.items():
                if is_wanted(phase, history, self._interruption.urgency):
                    await self._monitored(phase)
                    history.append(await self._perform(phase, perform()))
        finally:
            # Leave nothing behind even if the orchestrator itself breaks (a full disk, a cancelled task).
            if all(result.phase is not Phase.DOWN for result in history):
                await asyncio.wait_for(self._down(), self._timeout(Phase.DOWN))
        return await self._judge(history)

    async def _monitored(self, phase: Phase) -> None:
        """Starts the monitor after nodes came up, and ends it before they are stopped."""
        if phase is Phase.CONVERGE:
            self._monitor = Monitor(self._nodes, self._events)
            self._monitor.start()
        elif phase in (Phase.STOP, Phase.DOWN) and self._monitor is not None:
            await self._monitor.close()

    async def _perform(self, phase: Phase, work: Coroutine[Any, Any, Outcomes]) -> PhaseResult:
        self._observe(phase, 0.0)
        begun = self._moment()
        if phase is Phase.MEASURE:
            self._manifest["measure_from_ns"] = begun["t_ns"]
        self._events.add("phase", phase=phase, state="started", **begun)
        started = time.monotonic()
        ending, reason = await self._ending(phase, work)
        result = PhaseResult(phase, ending, time.monotonic() - started, reason)
        over = self._moment()
        if phase is Phase.MEASURE:
            over = {"t_ns": self._manifest.setdefault("measure_until_ns", over["t_ns"])}
        self._events.add(
            "phase",
            phase=phase,
            state="finished",
            outcome=result.ending,
            seconds=round(result.seconds, 3),
            reason=reason,
            **over,
        )
        return result

    def _moment(self) -> dict[str, int]:
        """Returns the run's own time, by which events are shown beside records."""
        return {} if self._backend is None else {"t_ns": self._backend.now_ns()}

    async def _ending(self, phase: Phase, work: Coroutine[Any, Any, Outcomes]) -> tuple[Ending, str]:
        timeout = self._timeout(phase)
        limit = TimeLimit(timeout, self._waited_s)
        try:
            outcomes = await bounded(work, limit, self._interruption, interrupted_by(phase))
        except TimeoutError:
            return Ending.TIMED_OUT, f"not done within {limit}"
        except PhaseInterrupted:
            return Ending.INTERRUPTED, ""
        except RoveError as error:
            return Ending.BROKE, str(error)
        except Exception as error:
            self._events.add("error", phase=phase, trace=traceback.format_exc())
            return Ending.BROKE, f"{type(error).__name__}: {error}"
        if phase in (Phase.PLAN, Phase.DOWN):
            return Ending.OK, ""
        outcomes = complete(outcomes, self._experiment.topology.node_names)
        self._record(phase, outcomes)
        return judge(outcomes, self._order.quorum)

    def _record(self, phase: Phase, outcomes: list[NodeOutcome]) -> None:
        def those(status: Status) -> dict[str, str]:
            return {outcome.node: outcome.reason for outcome in outcomes if outcome.status is status}

        self._events.add(
            "nodes",
            phase=phase,
            ok=list(those(Status.OK)),
            failed=those(Status.FAILED),
            unreachable=those(Status.UNREACHABLE),
        )

    def _waited_s(self) -> float:
        return self._backend.waited_s() if isinstance(self._backend, Patient) else 0.0

    def _timeout(self, phase: Phase) -> float:
        timeouts = self._experiment.timeouts
        match phase:
            case Phase.UP:
                return timeouts.up
            case Phase.CONVERGE:
                virtual = self._experiment.traits.virtual_time
                return virtual_timeout(timeouts.converge) if virtual else timeouts.converge
            case Phase.WARM_UP:
                return advance_timeout(self._experiment.warmup)
            case Phase.MEASURE:
                return advance_timeout(self._experiment.duration)
            case Phase.STOP:
                return timeouts.stop
            case Phase.COLLECT:
                return timeouts.collect
            case Phase.DOWN:
                return timeouts.down
            case _:
                return PLAN_TIMEOUT_S

    async def _plan(self) -> Outcomes:
        self._run = await asyncio.to_thread(self._run.pinned, self._directory.path)
        self._checkout = await asyncio.to_thread(checkout)
        self._manifest = self._first_manifest()
        write_json(self._directory.manifest, self._manifest)
        intent = self._journal.intend("directory", path=self._directory.temporary.name)
        self._directory.temporary.mkdir()
        self._journal.done(intent)
        self._backend = self._create_backend(
            self._run, self._directory.id, self._directory.path, self._journal
        )
        await self._let_watch(self._backend)
        return ()

    async def _let_watch(self, backend: Backend) -> None:
        """Nobody has to watch a run, so it goes on if nobody can."""
        try:
            await self._watchers.enter_async_context(self._watch(backend, self._directory))
        except (OSError, RoveError) as error:
            self._events.add("live", error=f"nobody can watch this run: {error}")

    async def _end_watching(self) -> None:
        try:
            async with asyncio.timeout(WATCH_TIMEOUT_S):
                await self._watchers.aclose()
        except Exception as error:
            self._events.add("live", error=f"{type(error).__name__}: {error}")

    async def _up(self) -> Outcomes:
        outcomes = await self._nodes.up(lambda fraction: self._observe(Phase.UP, fraction))
        self._up_ns = self._nodes.now_ns()
        return outcomes

    async def _converge(self) -> Outcomes:
        return await self._nodes.converge()

    async def _warm_up(self) -> Outcomes:
        return await self._advance(Phase.WARM_UP, self._experiment.warmup)

    async def _measure(self) -> Outcomes:
        try:
            return await self._advance(Phase.MEASURE, self._experiment.duration)
        finally:
            self._manifest["measure_until_ns"] = self._nodes.now_ns()

    async def _advance(self, phase: Phase, seconds: float) -> Outcomes:
        if seconds <= 0:
            return [NodeOutcome(node, Status.OK) for node in self._experiment.topology.node_names]
        if self._manifest[manifest.MOVING_FROM] is None:
            self._manifest[manifest.MOVING_FROM] = self._nodes.now_ns()
        return await self._nodes.advance(seconds, lambda fraction: self._observe(phase, fraction))

    async def _stop(self) -> Outcomes:
        return await self._nodes.stop()

    async def _collect(self) -> Outcomes:
        return await self._nodes.collect(self._directory.path)

    async def _down(self) -> Outcomes:
        """Lets the backend take down what it made, then scans for the run's mark to prove that nothing is
        left."""
        try:
            try:
                if self._monitor is not None:
                    await self._monitor.close()
            finally:
                await self._end_watching()  # it writes to the temporary directory, which is removed below
            if self._backend is not None:
                await self._backend.down()
        finally:
            run_id, path = self._directory.id, self._directory.path
            if left := processes.marked(run_id, path):
                await asyncio.to_thread(processes.end, left, 1.0)
            self._directory.remove_temporary()
        if left := processes.marked(run_id, path):
            raise RoveError(f"processes that could not be ended: {', '.join(str(p.pid) for p in left)}")
        return ()

    @property
    def _nodes(self) -> Backend:
        assert self._backend is not None, "planned first"
        return self._backend

    async def _judge(self, history: list[PhaseResult]) -> Verdict:
        self._observe(Phase.VERDICT, 0.0)
        # Sync records before the verdict: a power cut must not leave a verdict without its records.
        await asyncio.to_thread(sync_tree, self._directory.path)
        examined, sums = await asyncio.to_thread(self._examine)
        backend = self._backend
        doubts = (*self._own_doubts(), *(backend.doubts() if backend is not None else ()))
        facts = backend.facts() if backend is not None else {}
        events = read_lines(self._directory.events)
        refused = [
            *examined.refused,
            *by_orchestrator(self._backend.refusals() if self._backend is not None else ()),
        ]
        verdict = judge_run(
            history,
            examined.completeness,
            (*doubts, *examined.doubts),
            agent_crashes(events),
            refused,
            examined.never_emitted,
            interventions(events),
            notes := self._notes(facts),
        )
        finished = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._manifest:
            judged = {"doubts": list(doubts), "notes": notes, "finished": finished, "files": sums}
            known = {**self._manifest, **facts, **judged}
            write_json(self._directory.manifest, known)
        write_json(self._directory.verdict, verdict.document())
        self._events.add("verdict", verdict=verdict.verdict, reasons=verdict.reasons)
        self._observe(Phase.VERDICT, 1.0)
        return verdict

    def _notes(self, facts: Mapping[str, Any]) -> list[str]:
        begin = self._manifest.get("measure_from_ns")
        if begin is None or self._up_ns is None:
            return []
        note = unsettled_note(self._experiment, facts.get(manifest.SETTLED), (begin - self._up_ns) / 1e9)
        return [] if note is None else [note]

    def _own_doubts(self) -> list[str]:
        in_place = self._journal.is_at(self._directory.journal)
        return [] if in_place else ["the run's directory was removed or replaced while it ran"]

    def _examine(self) -> tuple[Examined, dict[str, str]]:
        nodes = self._experiment.topology.node_names
        examined = examine(self._directory, nodes, manifest.apps_in(self._manifest))
        return examined, manifest.checksums(self._directory.path)

    def _first_manifest(self) -> dict[str, Any]:
        experiment = self._experiment
        return {
            "run": self._directory.id,
            "experiment": experiment.name,
            "invocation": self._order.invocation,
            "factors": self._order.factors,
            "seed": experiment.seed,
            "backend": experiment.backend,
            manifest.ROUTING: short_name(experiment.routing.protocol),
            "clock": "virtual" if experiment.traits.virtual_time else "real",
            manifest.MOVING_FROM: None,
            "measure_from_ns": None,
            "measure_until_ns": None,
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "finished": None,
            "versions": manifest.versions(),
            manifest.CHECKOUT: self._checkout,
            "host": manifest.host_facts(),
            "command": self._order.command,
            "reproduce": ["rove", "run", str(self._directory.spec)],
            "apps": self._run.record(),
            "seeds": self._run.seeds(),
            "files": {},
        }
