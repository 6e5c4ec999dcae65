"""Progress of a run for people, on stderr: bars on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from orchestrator.lifecycle.interruption import lost_interrupts_raised
from orchestrator.runs.phases import Phase

if TYPE_CHECKING:
    from orchestrator.cli.run_watch import RunWatch
    from orchestrator.lifecycle.schedule import Standing
    from orchestrator.live.summary import Summary

MOST_BARS = 12
"""With more cells than this, bars of finished cells are taken away."""


def fraction_done(phase: Phase, within: float, warmup: float, duration: float) -> float:
    """How far a run has come, 0 to 1; its time is spent in warm-up and measurement."""
    begin, end = 0.04, 0.96
    per_second = (end - begin) / max(warmup + duration, 1e-9)
    match phase:
        case Phase.PLAN:
            return 0.0
        case Phase.UP:
            return 0.01 + 0.02 * within
        case Phase.CONVERGE:
            return 0.03
        case Phase.WARM_UP:
            return begin + per_second * warmup * within
        case Phase.MEASURE:
            return begin + per_second * (warmup + duration * within)
        case Phase.VERDICT:
            return end + (1 - end) * within
        case _:
            return end


LINE_S = 10.0
"""Between two lines about a run that goes on, where there is no terminal."""
_FLOWING = (Phase.WARM_UP, Phase.MEASURE)


class RunProgress:
    """One line of progress for each cell, with its phase; and what one of the running cells does."""

    def __init__(self, console: Console, labels: Sequence[str], warmup: float, duration: float) -> None:
        self._console = console
        self._labels = labels
        self._warmup = warmup
        self._duration = duration
        self._phases: dict[int, Phase] = {}
        self._bars: dict[int, TaskID] = {}
        self._done = 0
        self._progress = _bars(console)
        self._whole = self._progress.add_task("all", phase="", total=len(labels)) if len(labels) > 1 else None
        self._directory_of: Callable[[int], Path] | None = None
        self._watch: RunWatch | None = None
        self._watched = 0
        self._running: list[int] = []
        self._said = time.monotonic()

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self._console.is_terminal:
            with self._watching():
                yield
            return
        with Live(get_renderable=self._shown, console=self._console, refresh_per_second=4), self._watching():
            yield

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """In the end only the bars are left: the verdict and the results say the rest."""
        try:
            yield
        finally:
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.stop()

    def watch(self, directory_of: Callable[[int], Path]) -> None:
        """Shows from now on what goes on in the runs, by their directories."""
        from orchestrator.cli.run_watch import RunWatch

        self._directory_of = directory_of
        self._watch = RunWatch(None if self._console.is_terminal else self._say_summary)

    def _shown(self) -> RenderableType:
        summary = self._watch.summary if self._watch is not None else None
        if summary is None:
            return self._progress
        from orchestrator.cli.live_display import RunBlock

        several = len(self._labels) > 1
        head = f"[{self._watched}] {self._labels[self._watched - 1]}" if several else ""
        return Group(self._progress, RunBlock(summary, head, with_bar=False))

    def _say_summary(self, summary: "Summary") -> None:
        from orchestrator.cli.live_display import plain_line

        flows = self._phases.get(self._watched) in _FLOWING
        known = any(app.goodput is not None for app in summary.apps)
        if flows and known and time.monotonic() - self._said >= LINE_S:
            self._said = time.monotonic()
            label = self._labels[self._watched - 1]
            self.say(f"[{self._watched}/{len(self._labels)}] {label}: {plain_line(summary)}")

    def _follow(self, number: int, finished: bool) -> None:
        """Follows the first cell that runs; the next one once it has finished."""
        if self._watch is None or self._directory_of is None:
            return
        if finished and number in self._running:
            self._running.remove(number)
        elif not finished and number not in self._running:
            self._running.append(number)
        if self._watched not in self._running:
            self._watched = self._running[0] if self._running else 0
            self._watch.follow(self._directory_of(self._watched) if self._watched else None)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def observe(self, number: int, phase: Phase, within: float) -> None:
        if self._phases.get(number) is not phase:
            self._phases[number] = phase
            if not self._console.is_terminal:
                self.say(f"[{number}/{len(self._labels)}] {self._labels[number - 1]}: {phase}")
        if number not in self._bars:
            self._bars[number] = self._progress.add_task(self._labels[number - 1], phase="", total=1.0)
        fraction = fraction_done(phase, within, self._warmup, self._duration)
        finished = phase is Phase.VERDICT and within >= 1.0
        sending = f" {within:.0%}" if phase is Phase.UP and within else ""  # packages, to real nodes
        text = "done" if finished else f"{phase}{sending}"
        self._progress.update(self._bars[number], completed=fraction, phase=text)
        self._follow(number, finished)
        if finished:
            self._finish(number)

    def tell(self, standing: "Standing") -> None:
        """Says nothing more: each cell has a line of its own."""

    def _finish(self, number: int) -> None:
        self._done += 1
        if self._whole is not None:
            self._progress.update(
                self._whole, completed=self._done, phase=f"{self._done}/{len(self._labels)}"
            )
        if len(self._labels) > MOST_BARS:
            self._progress.remove_task(self._bars[number])


@contextmanager
def step(console: Console, what: str) -> Iterator[Callable[[str, float], None]]:
    """Progress of one piece of work in stages, such as the analysis. Ctrl-C ends it at the next stage at the
    latest.
    """
    with lost_interrupts_raised() as raise_lost, _stages(console, what) as show:

        def tell(stage: str, fraction: float) -> None:
            raise_lost()
            show(stage, fraction)

        yield tell


@contextmanager
def _stages(console: Console, what: str) -> Iterator[Callable[[str, float], None]]:
    if not console.is_terminal:
        yield _lines(console, what)
        return
    with _bars(console) as progress:
        task = progress.add_task(what, phase="", total=1.0)
        yield lambda stage, fraction: progress.update(task, completed=fraction, phase=stage)


def _lines(console: Console, what: str) -> Callable[[str, float], None]:
    """One line a stage."""
    stages: list[str] = []

    def tell(stage: str, fraction: float) -> None:
        if stage not in stages:
            stages.append(stage)
            console.print(f"{what}: {stage}", markup=False)

    return tell


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[phase]}", markup=False),
        TimeElapsedColumn(),
        console=console,
    )
