"""Runs the cells that are not done yet, several at a time, the longest first, and keeps each as it ends."""

import asyncio
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.paper.cells import Kept, KeptCell, key_of
from benchmarks.shared.measured import measured
from benchmarks.shared.runs import performed
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.planning.sweep import Cell
from orchestrator.runs.checkout import checkout
from orchestrator.runs.phases import Urgency
from orchestrator.spec.experiment import Experiment


class Task(NamedTuple):
    """``name``: for people, such as ``fig5 core 10 m/s k=3 seed 7``. ``cost``: how long it takes, about."""

    key: str
    name: str
    cell: Cell
    cost: float = 0.0


class Watching(Protocol):
    def began(self, todo: Sequence[Task]) -> None: ...
    def ended(self, task: Task, cell: KeptCell) -> None: ...


def tasks_of(cells: Sequence[Cell], name: Callable[[Cell], str]) -> list[Task]:
    return [Task(key_of(cell.experiment), name(cell), cell) for cell in cells]


def missing(tasks: Sequence[Task], kept: Kept) -> list[Task]:
    """Returns the tasks that are not done, each once, the longest first."""
    wanted = {task.key: task for task in tasks if not kept.done(task.key)}
    known = {cell.key: cell for cell in kept.all()}
    priced = [task._replace(cost=_cost(task.cell.experiment, list(known.values()))) for task in wanted.values()]
    return sorted(priced, key=lambda task: -task.cost)


def _cost(experiment: Experiment, known: Sequence[KeptCell]) -> float:
    """Returns how many seconds a run takes: as those of as many nodes took on this backend, or a guess."""
    nodes, virtual_s = len(experiment.topology.node_names), experiment.warmup + experiment.duration
    if not experiment.traits.virtual_time:
        return 30.0 + virtual_s
    rates = [cell.seconds / cell.virtual_s for cell in known if (cell.backend, cell.nodes) == ("sim", nodes)]
    rate = fmean(rates) if rates else 0.15 * (nodes / 25) ** 2
    return rate * virtual_s


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
            cell = await _run(task, root, interruption)
            kept.add(cell)
            watching.ended(task, cell)

    with (
        tempfile.TemporaryDirectory(prefix="rove-paper-") as folder,
        interruption.by_signals(),
    ):
        workers = [asyncio.ensure_future(work(Path(folder))) for _ in range(jobs)]
        endings = await asyncio.gather(*workers, return_exceptions=True)
    for ending in endings:
        if isinstance(ending, BaseException):
            raise ending
    if interruption.urgency is not Urgency.NONE:
        raise KeyboardInterrupt


async def _run(task: Task, root: Path, interruption: Interruption) -> KeptCell:
    experiment = task.cell.experiment
    started = time.monotonic()
    run_id = f"{task.key}-{secrets.token_hex(3)}"
    finished = await performed(experiment, root, run_id, interruption)
    directory, verdict = finished.directory, finished.verdict
    figures = await asyncio.to_thread(measured, directory) if verdict.verdict != "failed" else {}
    shutil.rmtree(directory.path)
    code = checkout() or {}
    return KeptCell(
        key=task.key,
        backend=str(experiment.backend),
        seed=experiment.seed,
        factors=dict(task.cell.factors),
        verdict=str(verdict.verdict),
        reasons=verdict.reasons,
        figures=figures,
        seconds=round(time.monotonic() - started, 1),
        virtual_s=experiment.warmup + experiment.duration,
        nodes=len(experiment.topology.node_names),
        commit=code.get("commit"),
        dirty=code.get("dirty"),
    )


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
        left = self._in_words()
        self._progress.update(self._row, advance=1, description=task.name, left=left)
        if not self._console.is_terminal:
            goodput = cell.figures.get("goodput_fps")
            shown = cell.verdict if goodput is None else f"{cell.verdict}, goodput {goodput:.2f} /s"
            print(f"{self._done}/{self._total} {task.name}: {shown}, {cell.seconds:.0f} s; {left}", file=self._console.file, flush=True)
        if cell.reasons:
            self._progress.print(f"{task.name}: {cell.verdict}: {'; '.join(cell.reasons)}")

    def _in_words(self) -> str:
        """Expected times were guesses: they are corrected by those that are known by now."""
        factor = self._spent / self._expected if self._expected else 1.0
        minutes = self._left * factor / self._jobs / 60
        return f"{minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
