"""One `rove run` or `rove sweep`: a single run, or the runs of a sweep side by side, under one id."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from orchestrator.errors import RoveError
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.run import CreateBackend, Run, RunOrder, Watch, unwatched
from orchestrator.lifecycle.schedule import Schedule, Told, say_nothing
from orchestrator.planning.bundle import bundle
from orchestrator.planning.sweep import Cell
from orchestrator.runs import run_directory
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import write_atomic, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Phase, Urgency
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.sweep_state import CellState, SweepState, state_after
from orchestrator.runs.verdict import Judgement, Verdict, judge_sweep
from orchestrator.spec.experiment import Experiment

CellObserver = Callable[[int, Phase, float], None]
"""Called with a cell's number, its phase, and the fraction of that phase that is done."""


class CellLost(RoveError):
    """A cell that was to run elsewhere did not come back."""


class Elsewhere(Protocol):
    """Runs cells of a sweep on other machines."""

    def slots(self) -> int:
        """Returns how many cells it runs at the same time."""
        ...

    def places(self) -> int:
        """Returns how many cells it should have now, so that it never waits."""
        ...

    async def run(self, cell: Cell, order: RunOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        """Runs a cell; its whole run appears in ``directory`` at once. Raises CellLost."""
        ...

    def cancel(self) -> None:
        """Ends what it runs now; these cells are lost."""
        ...


@dataclass(frozen=True)
class FinishedRun:
    directory: RunDirectory
    factors: dict[str, Any]
    verdict: Verdict


@dataclass(frozen=True)
class Finished:
    """The result of a command. ``verdict`` is that of the only run, or of the sweep as a whole."""

    verdict: Verdict
    runs: tuple[FinishedRun, ...]
    interrupted: bool


class Invocation:
    """Owns the directory and the journal of what one command runs; use it as a context manager."""

    def __init__(
        self,
        experiment: Experiment,
        cells: Sequence[Cell],
        directory: RunDirectory,
        earlier: "Earlier | None" = None,
    ) -> None:
        """``earlier``: what was run of this sweep before, if it goes on now."""
        self.directory = directory
        self.is_sweep = bool(experiment.sweep)
        self.journal = earlier.journal if earlier is not None else Journal.create(directory.journal)
        self.events = EventLog(directory.events)
        self._cells = cells
        self._finished: dict[int, FinishedRun] = dict(earlier.finished) if earlier is not None else {}
        self._started = {number: run.directory.id for number, run in self._finished.items()}
        if earlier is None:
            _write_spec(experiment, directory)
        self.state: SweepState | None = None
        if self.is_sweep:
            self._write_members()
            finished = {number: state_after(run.verdict) for number, run in self._finished.items()}
            states = {cell.number: finished.get(cell.number, CellState.WAITING) for cell in cells}
            self.state = SweepState(directory.path, states)
        run_directory.point_latest(directory)

    @classmethod
    def create(cls, experiment: Experiment, cells: Sequence[Cell], root: Path, run_id: str) -> Self:
        return cls(experiment, cells, run_directory.create(root, experiment.name, run_id))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the journal.

        A run without a verdict then counts as dead: `rove down` cleans up and judges it.
        """
        with self.journal:
            self.directory.remove_temporary()
            if error is not None and not self.directory.verdict.exists():
                self.journal.abandon()

    def path_of(self, number: int) -> Path:
        """Returns the directory of a cell's run, which may not exist yet."""
        if not self.is_sweep:
            return self.directory.path
        return self.directory.path.parent / run_directory.member_id(self.directory.id, number)

    async def run(
        self,
        jobs: int,
        create_backend: CreateBackend,
        interruption: Interruption,
        observe: CellObserver,
        command: list[str],
        watch: Watch = unwatched,
        elsewhere: Elsewhere | None = None,
        most_failures: int | None = None,
        tell: Told = say_nothing,
    ) -> Finished:
        """Runs the cells that have no result yet, the longest first.

        ``watch`` lets others watch each of the runs that go on here. ``elsewhere`` runs cells on other
        machines. After ``most_failures`` failed cells no further one is started. ``tell`` is called with how
        far it is.
        """

        async def perform(cell: Cell) -> None:
            order = RunOrder(cell.run, dict(cell.factors), self.directory.id, command, cell.experiment.quorum)
            if elsewhere is not None:
                finished = await self._run_elsewhere(cell, order, elsewhere, interruption)
            else:
                finished = await self._run_here(cell, order, create_backend, interruption, observe, watch)
            if finished is not None:
                self._finished[cell.number] = finished

        schedule = Schedule(self._cells, perform, self._verdict_of, interruption, most_failures, tell)
        # A single run always gets a verdict; it starts nothing if the user has asked to stop already.
        schedule.starts_when_interrupted = not self.is_sweep
        try:
            if elsewhere is None:
                await schedule.run(lambda: jobs, lambda: jobs)
            else:
                await schedule.run(elsewhere.places, elsewhere.slots, on_interruption=elsewhere.cancel)
        finally:
            if self.state is not None:
                with suppress(OSError):  # the disk may be full, and what is done is on it
                    self.state.skip_the_rest()
        runs = tuple(self._finished[number] for number in sorted(self._finished))
        return Finished(self.judge(runs), runs, interruption.urgency is not Urgency.NONE)

    def _verdict_of(self, number: int) -> Verdict | None:
        found = self._finished.get(number)
        return None if found is None else found.verdict

    async def _run_here(
        self,
        cell: Cell,
        order: RunOrder,
        create_backend: CreateBackend,
        interruption: Interruption,
        observe: CellObserver,
        watch: Watch,
    ) -> FinishedRun:
        def observe_cell(phase: Phase, fraction: float) -> None:
            observe(cell.number, phase, fraction)

        if not self.is_sweep:
            run = Run(order, self.directory, self.journal, create_backend, interruption, observe_cell, watch)
            return FinishedRun(self.directory, order.factors, await run.execute())
        intent = self._intend(cell)
        directory = run_directory.create_member(self.directory, cell.number)
        with Journal.create(directory.journal) as journal:
            _write_spec(cell.experiment, directory)
            run = Run(order, directory, journal, create_backend, interruption, observe_cell, watch)
            verdict = await run.execute()
        return self._ended(cell, intent, FinishedRun(directory, order.factors, verdict))

    async def _run_elsewhere(
        self, cell: Cell, order: RunOrder, elsewhere: Elsewhere, interruption: Interruption
    ) -> FinishedRun | None:
        """Returns None if the user left meanwhile: the cell then is as if it had never started."""
        intent = self._intend(cell)
        directory = RunDirectory(self.path_of(cell.number))
        try:
            verdict = await elsewhere.run(cell, order, directory, self.directory.temporary)
        except CellLost as error:
            if interruption.urgency is not Urgency.NONE:
                return None
            verdict = self._write_lost(cell, str(error))
        return self._ended(cell, intent, FinishedRun(directory, order.factors, verdict))

    def _write_lost(self, cell: Cell, reason: str) -> Verdict:
        """Gives a cell without a result a directory that says why, as every failed run has one."""
        directory = run_directory.create_member(self.directory, cell.number)
        verdict = Verdict(Judgement.FAILED, (reason,))
        with Journal.create(directory.journal):
            _write_spec(cell.experiment, directory)
            write_json(directory.verdict, verdict.document())
        return verdict

    def _intend(self, cell: Cell) -> int:
        """Records that the cell starts. It happens before its directory
        exists, so that a crash leaves no unlisted member."""
        run_id = run_directory.member_id(self.directory.id, cell.number)
        intent = self.journal.intend("run", run=run_id)
        self._started[cell.number] = run_id
        self._write_members()
        self._enter(cell, CellState.RUNNING)
        return intent

    def _ended(self, cell: Cell, intent: int, finished: FinishedRun) -> FinishedRun:
        self.journal.done(intent, verdict=finished.verdict.verdict)
        self.events.add("run", run=finished.directory.id, verdict=finished.verdict.verdict)
        self._enter(cell, state_after(finished.verdict))
        return finished

    def _enter(self, cell: Cell, state: CellState) -> None:
        if self.state is not None:
            self.state.set(cell.number, state)

    def _write_members(self) -> None:
        factors = {name: None for cell in self._cells for name in cell.factors}
        document = {
            "id": self.directory.id,
            "experiment": self.directory.experiment,
            "members": [self._started[number] for number in sorted(self._started)],
            "factors": list(factors),
            "cells": [cell.factors for cell in self._cells],
        }
        write_json(self.directory.sweep, document)

    def judge(self, runs: Sequence[FinishedRun]) -> Verdict:
        """Returns the verdict of the only run, or of the sweep as a whole; writes the sweep's to its file."""
        if not self.is_sweep:
            return runs[0].verdict
        verdict = judge_sweep({run.directory.id: run.verdict for run in runs}, len(self._cells))
        write_json(self.directory.verdict, verdict.document())
        self.events.add("verdict", verdict=verdict.verdict, reasons=verdict.reasons)
        return verdict


@dataclass(frozen=True)
class Earlier:
    """What is known of a sweep that goes on: its journal, locked, and the runs that stay as they are."""

    journal: Journal
    finished: Mapping[int, FinishedRun]


def _write_spec(experiment: Experiment, directory: RunDirectory) -> None:
    """Writes the experiment with all files it names, so that the run can be repeated from its directory."""
    for name, content in bundle(experiment).items():
        path = directory.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)


def default_jobs(cells: Sequence[Cell]) -> int:
    """Returns how many runs go on at the same time: one in real time, as they would delay each other."""
    virtual = sum(cell.experiment.traits.virtual_time for cell in cells)
    return max(1, min(len(os.sched_getaffinity(0)), virtual))
