"""Progress of a run for people, on stderr: bars on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from orchestrator.runs.phases import Phase

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


class RunProgress:
    """One line of progress for each cell, with its phase."""

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

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with self._progress:
            yield

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
        if finished:
            self._finish(number)

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
    """Progress of one piece of work in stages, such as the analysis."""
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
