"""Progress of a whole sweep for people, on stderr: one bar with the time left, or plain lines at times."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.runs.phases import Phase

if TYPE_CHECKING:
    from orchestrator.lifecycle.schedule import Standing

LINE_S = 10.0
"""Between two lines, where there is no terminal."""


def in_time(seconds: float) -> str:
    """Returns a duration as people say it; an estimate needs no more digits."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


class SweepProgress:
    """Shows how many of ``total`` cells are done."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._before = 0
        self._failed_before = 0
        self._said = 0.0
        self._last = ""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bar.add_task("sweep", total=total, state="")

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with self._bar:
            yield

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def begin(self, done: int, failed: int) -> None:
        """Counts what earlier commands have done; ``failed``: how many of those failed."""
        self._before = done
        self._failed_before = failed
        self._bar.update(self._task, completed=done)

    def watch(self, directory_of: Callable[[int], Path]) -> None:
        """Looks into no run: there may be thousands."""

    def observe(self, number: int, phase: Phase, within: float) -> None:
        """Shows no phases: each run is one step."""

    def tell(self, standing: "Standing") -> None:
        ended = self._before + standing.ended
        text = state_text(standing, self._failed_before)
        self._bar.update(self._task, completed=ended, state=text)
        line = f"[{ended}/{self._total}] {text}"
        over = not standing.running
        due = time.monotonic() - self._said >= LINE_S or over
        if not self._console.is_terminal and due and line != self._last:
            self._said = time.monotonic()
            self._last = line
            self.say(line)


def state_text(standing: "Standing", failed_before: int = 0) -> str:
    failed = failed_before + standing.failed
    parts = [f"{standing.running} running"] if standing.running else []
    parts += [f"{failed} failed"] if failed else []
    if standing.left_s is not None and (standing.running or standing.waiting):
        parts.append(f"about {in_time(standing.left_s)} left")
    return ", ".join(parts) or "done"
