"""`rove analyze --watch` and `--new`: takes in runs as they end, in one Spark that stays."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import typer

from orchestrator.cli.output import console, errors, json_text
from orchestrator.cli.results import show_summaries
from orchestrator.cli.spark_options import chosen_session
from orchestrator.errors import EXIT_INTERRUPTED, BadInput
from orchestrator.runs.run_directory import RunDirectory

_NICENESS = 5
"""It yields to the runs that go on beside it."""


def take_in(
    root: Path, master: str | None, conf: list[str] | None, as_json: bool, *, and_go_on: bool
) -> None:
    """Takes in what is new under ``root``, and goes on until Ctrl-C if asked to."""
    from orchestrator.analytics.streaming.query import Taker, require_free, take_in_new

    if not root.is_dir():
        raise BadInput(f"there are no runs under {root} yet: start one with rove run FILE")
    require_free(root)
    os.nice(_NICENESS)
    with chosen_session(master, conf, [], folder=root, needed=True) as spark:
        assert spark is not None
        ending = Event()
        output = _Output(_json_line if as_json else _shown, ending.set)
        taker = Taker(root, spark, _steps(), output, _told, ending)
        if and_go_on:
            errors.print(f"{root}: each run is analysed when it has ended. Ctrl-C ends this.", markup=False)
        with _ended_by_signals(ending.set):
            take_in_new(taker, and_go_on=and_go_on)
    if output.closed is not None:
        raise output.closed
    if ending.is_set():
        errors.print("Ended; what was taken in stays, and the next time goes on from there.")
        raise typer.Exit(EXIT_INTERRUPTED)


def _steps() -> Callable[[str, float], None]:
    """Shows what is done now, a line a step: it goes on for hours."""
    last = ""

    def tell(stage: str, fraction: float) -> None:
        nonlocal last
        if stage not in (last, "starting Spark", "done"):
            last = stage
            errors.print(f"{fraction:4.0%} {stage}", markup=False, style="dim")

    return tell


@dataclass
class _Output:
    """Prints results, and ends the command when nobody reads them any more. ``closed``: what said so."""

    show: Callable[[Path, dict[str, Any]], None]
    end: Callable[[], None]
    closed: BrokenPipeError | None = None

    def __call__(self, directory: Path, summary: dict[str, Any]) -> None:
        try:
            self.show(directory, summary)
        except BrokenPipeError as error:
            self.closed = error
            self.end()


def _shown(directory: Path, summary: dict[str, Any]) -> None:
    console.print(f"{directory.parent.name} {directory.name}", style="bold", markup=False)
    show_summaries([(RunDirectory(directory), summary)])
    console.print(f"summary  {RunDirectory(directory).summary}", markup=False, soft_wrap=True)


def _json_line(directory: Path, summary: dict[str, Any]) -> None:
    sys.stdout.write(
        json_text({"run": directory.name, "directory": str(directory), "summary": summary}) + "\n"
    )
    sys.stdout.flush()


def _told(why: str) -> None:
    errors.print(f"left out: {why}", markup=False, soft_wrap=True)


@contextmanager
def _ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C ends in order; a second one at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
