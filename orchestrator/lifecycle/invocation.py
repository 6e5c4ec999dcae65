"""One `rove run`: a single run, or the runs of a sweep side by side, under one id."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.run import CreateBackend, Run, RunOrder, Watch, unwatched
from orchestrator.planning.bundle import bundle
from orchestrator.planning.sweep import Cell
from orchestrator.runs import run_directory
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import write_atomic, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Phase, Urgency
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict, judge_sweep
from orchestrator.spec.experiment import Experiment

CellObserver = Callable[[int, Phase, float], None]
"""Called with a cell's number, its phase, and the fraction of that phase that is done."""


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

    def __init__(self, experiment: Experiment, cells: Sequence[Cell], directory: RunDirectory) -> None:
        self.directory = directory
        self.is_sweep = bool(experiment.sweep)
        self.journal = Journal.create(directory.journal)
        self.events = EventLog(directory.events)
        self._cells = cells
        self._finished: dict[int, FinishedRun] = {}
        self._started: dict[int, str] = {}
        _write_spec(experiment, directory)
        if self.is_sweep:
            self._write_members()
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
    ) -> Finished:
        """``watch`` lets others watch each of the runs."""
        places = asyncio.Semaphore(jobs)

        async def take_turn(cell: Cell) -> None:
            async with places:
                # A single run always gets a verdict; it starts nothing if the user has asked to stop already.
                if interruption.urgency is Urgency.NONE or not self.is_sweep:
                    self._finished[cell.number] = await self._run_cell(
                        cell, create_backend, interruption, observe, command, watch
                    )

        # When one run breaks, the others still end in order before the error is raised.
        endings = await asyncio.gather(*map(take_turn, self._cells), return_exceptions=True)
        for ending in endings:
            if isinstance(ending, BaseException):
                raise ending
        runs = tuple(self._finished[number] for number in sorted(self._finished))
        return Finished(self.judge(runs), runs, interruption.urgency is not Urgency.NONE)

    async def _run_cell(
        self,
        cell: Cell,
        create_backend: CreateBackend,
        interruption: Interruption,
        observe: CellObserver,
        command: list[str],
        watch: Watch,
    ) -> FinishedRun:
        order = RunOrder(cell.run, dict(cell.factors), self.directory.id, command, cell.experiment.quorum)

        def observe_cell(phase: Phase, fraction: float) -> None:
            observe(cell.number, phase, fraction)

        if not self.is_sweep:
            run = Run(order, self.directory, self.journal, create_backend, interruption, observe_cell, watch)
            return FinishedRun(self.directory, order.factors, await run.execute())
        directory, intent = self._create_member(cell)
        with Journal.create(directory.journal) as journal:
            _write_spec(cell.experiment, directory)
            run = Run(order, directory, journal, create_backend, interruption, observe_cell, watch)
            verdict = await run.execute()
        self.journal.done(intent, verdict=verdict.verdict)
        self.events.add("run", run=directory.id, verdict=verdict.verdict)
        return FinishedRun(directory, order.factors, verdict)

    def _create_member(self, cell: Cell) -> tuple[RunDirectory, int]:
        run_id = run_directory.member_id(self.directory.id, cell.number)
        intent = self.journal.intend("run", run=run_id)
        self._started[cell.number] = run_id
        self._write_members()  # before the directory exists, so that a crash leaves no unlisted member
        return run_directory.create_member(self.directory, cell.number), intent

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


def _write_spec(experiment: Experiment, directory: RunDirectory) -> None:
    """Writes the experiment with all files it names, so that the run can be repeated from its directory."""
    for name, content in bundle(experiment).items():
        path = directory.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)


def default_jobs(experiment: Experiment, cells: int) -> int:
    """Returns how many runs go on at the same time: one in real time, as they would delay each other."""
    if not experiment.traits.virtual_time:
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), cells))
