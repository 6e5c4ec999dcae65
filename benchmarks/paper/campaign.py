"""Runs the cells that are not done yet, several at a time, the longest first, and keeps each as it ends."""

import asyncio
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.paper.cells import Kept, KeptCell, Place, key_of
from benchmarks.paper.figures import OFFERED, THROUGHPUT
from benchmarks.paper.machines import machine_in_words
from benchmarks.paper.workplace import workplace
from benchmarks.shared.measured import measured
from benchmarks.shared.runs import Interrupted, performed
from orchestrator.apps.dataflow.paper import GOODPUT, LATENCY
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.planning.sweep import Cell
from orchestrator.runs.checkout import commit_of
from orchestrator.runs.phases import Urgency
from orchestrator.spec.experiment import Experiment

FIGURES_KEPT = (GOODPUT, OFFERED, THROUGHPUT, "latency_p50_s", LATENCY, "emitted", "delivered")
ROOT = Path(__file__).parents[2]
CODE = ("node_agent", "orchestrator", "benchmarks", "experiments", "topologies")
"""Folders that decide what a run does."""


class Task(NamedTuple):
    """One run. ``name``: for people, such as ``fig5 core 10 m/s, k=3``. ``cost``: about how many seconds."""

    key: str
    name: str
    experiment: Experiment
    factors: dict[str, Any]
    cost: float = 0.0

    @property
    def place(self) -> Place:
        return self.key, self.experiment.seed


class Watching(Protocol):
    def began(self, todo: Sequence[Task]) -> None: ...
    def ended(self, task: Task, cell: KeptCell) -> None: ...


def tasks_of(cell: Cell, name: str, seeds: Sequence[int]) -> list[Task]:
    """Returns the cell's runs with these seeds. Nothing else differs between them."""
    key = key_of(cell.experiment)
    factors = {path: value for path, value in cell.factors.items() if path != "seed"}
    return [Task(key, name, cell.experiment.model_copy(update={"seed": seed}), factors) for seed in seeds]


def missing(
    tasks: Sequence[Task], kept: Kept, counts: Callable[[str | None], bool] = lambda commit: True
) -> list[Task]:
    """Returns the tasks that are not done, each once, the longest first. ``counts``: whether a cell counts
    that was run by this commit.
    """
    wanted: dict[Place, Task] = {}
    for task in tasks:
        if not kept.is_done(task.place) or not counts(kept.at(task.place).commit):
            wanted.setdefault(task.place, task)
    rates: dict[int, list[float]] = {}
    for cell in kept.all():
        if cell.backend == "sim":
            rates.setdefault(cell.nodes, []).append(cell.seconds / cell.virtual_s)
    priced = [task._replace(cost=_cost(task.experiment, rates)) for task in wanted.values()]
    return sorted(priced, key=lambda task: (-task.cost, task.experiment.seed))


def _cost(experiment: Experiment, rates: Mapping[int, Sequence[float]]) -> float:
    """``rates``: seconds a virtual second, of runs with so many nodes that are known."""
    nodes, seconds = len(experiment.topology.node_names), experiment.warmup + experiment.duration
    if not experiment.traits.virtual_time:
        return 30.0 + seconds
    known = rates.get(nodes)
    return seconds * (fmean(known) if known else 0.15 * (nodes / 25) ** 2)


def run_all(todo: Sequence[Task], jobs: int, kept: Kept, watching: Watching) -> None:
    """Raises KeyboardInterrupt if the user interrupts; what has ended by then is kept."""
    watching.began(todo)
    asyncio.run(_run_all(todo, jobs, kept, watching))


async def _run_all(todo: Sequence[Task], jobs: int, kept: Kept, watching: Watching) -> None:
    interruption = Interruption()
    waiting = list(todo)

    async def work(root: Path) -> None:
        while waiting and interruption.urgency is Urgency.NONE:
            task = waiting.pop(0)
            try:
                cell = await _run(task, root, interruption)
            except Interrupted:
                return
            kept.add(cell)
            watching.ended(task, cell)

    with workplace() as folder, interruption.by_signals():
        workers = [asyncio.ensure_future(work(folder)) for _ in range(jobs)]
        endings = await asyncio.gather(*workers, return_exceptions=True)
    for ending in endings:
        if isinstance(ending, BaseException):
            raise ending
    if interruption.urgency is not Urgency.NONE:
        raise KeyboardInterrupt


async def _run(task: Task, root: Path, interruption: Interruption) -> KeptCell:
    experiment = task.experiment
    started = time.monotonic()
    commit, dirty = commit_of(ROOT), code_was_changed()  # the simulator reads the code when it starts
    run_id = f"{task.key}-{experiment.seed}-{secrets.token_hex(3)}"
    finished = await performed(experiment, root, run_id, interruption)
    directory, verdict = finished.directory, finished.verdict
    figures = await asyncio.to_thread(measured, directory) if verdict.verdict != "failed" else {}
    figures = {name: figures[name] for name in FIGURES_KEPT if name in figures}
    shutil.rmtree(directory.path)
    return KeptCell(
        key=task.key,
        backend=str(experiment.backend),
        seed=experiment.seed,
        factors=task.factors,
        verdict=str(verdict.verdict),
        reasons=verdict.reasons,
        figures=figures,
        seconds=round(time.monotonic() - started, 1),
        virtual_s=experiment.warmup + experiment.duration,
        nodes=len(experiment.topology.node_names),
        commit=commit,
        dirty=dirty,
        machine=machine_in_words(),
    )


def code_was_changed() -> bool | None:
    """Returns whether the code differs from its commit, pages left out of account; None: not known."""
    command = ["git", "--no-optional-locks", "-C", str(ROOT), "status", "--porcelain", "--", *CODE]
    try:
        found = subprocess.run(command, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(found.stdout.strip())


class Bar(AbstractContextManager["Bar"]):
    """Shows how far the cells are and how long the rest takes; a line for each cell where there is no
    terminal.
    """

    def __init__(self, jobs: int) -> None:
        self._console = Console(stderr=True)
        self._jobs = jobs
        self._left = self._spent = self._expected = 0.0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._row = self._progress.add_task("cells", total=None, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def began(self, todo: Sequence[Task]) -> None:
        self._left = sum(task.cost for task in todo)
        self._total, self._done = len(todo), 0
        self._progress.update(self._row, total=len(todo), left=self._in_words())

    def ended(self, task: Task, cell: KeptCell) -> None:
        self._done += 1
        self._left -= task.cost
        self._expected += task.cost
        self._spent += cell.seconds
        left, name = self._in_words(), f"{task.name}, seed {cell.seed}"
        self._progress.update(self._row, advance=1, description=name, left=left)
        if not self._console.is_terminal:
            goodput = cell.figures.get("goodput_fps")
            shown = cell.verdict if goodput is None else f"{cell.verdict}, goodput {goodput:.2f} /s"
            text = f"{self._done}/{self._total} {name}: {shown}, {cell.seconds:.0f} s; {left}"
            print(text, file=sys.stderr, flush=True)
        if cell.reasons:
            self._progress.print(f"{name}: {cell.verdict}: {'; '.join(cell.reasons)}")

    def _in_words(self) -> str:
        """Expected times were guesses: they are corrected by those that are known by now."""
        factor = self._spent / self._expected if self._expected else 1.0
        minutes = self._left * factor / self._jobs / 60
        return f"{minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
