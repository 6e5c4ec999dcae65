"""Waits for a moment in a run, as its events and its journal show it, so that a drill can
act exactly then.
"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.drilling.drill import Drill
from orchestrator.runs.events import Event
from orchestrator.runs.files import parse_lines
from orchestrator.runs.phases import Phase
from orchestrator.runs.run_directory import RunDirectory

PHASES = tuple(phase for phase in Phase if phase is not Phase.VERDICT)
LATEST_S = 6.0
"""A quiet machine finishes the whole run in this time."""


@dataclass(frozen=True)
class Moment:
    """The begin or end of a phase; or the journal's entry with that number; or seconds from the start."""

    phase: str = ""
    state: str = "started"
    entry: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.phase:
            return f"{self.phase} {self.state}"
        return f"journal entry {self.entry}" if self.entry else f"{self.seconds:.2f} s"


BOUNDARIES = tuple(Moment(phase, state) for phase in PHASES for state in ("started", "finished"))
ENTRIES = tuple(Moment(entry=number) for number in range(1, 10))
VERDICT = Moment("verdict")
MOMENTS_OF_LOSS: tuple[Moment | None, ...] = (None, *BOUNDARIES, None, *ENTRIES, VERDICT)
"""None: after the command has ended."""


def at_random(drill: Drill, latest: float = LATEST_S) -> Moment:
    return Moment(seconds=drill.dice.uniform(0.2, latest))


def come(drill: Drill, run: RunDirectory, moment: Moment, process: "subprocess.Popen[str]") -> bool:
    """Waits for the moment; False if the command ended before."""
    if not (moment.phase or moment.entry):
        over = time.monotonic() + moment.seconds
        return drill.until(lambda: time.monotonic() >= over, process)
    return drill.until(_seen(run, moment), process)


def events(run: RunDirectory) -> list[Event]:
    return list(parse_lines(run.events.read_bytes())) if run.events.exists() else []


def _seen(run: RunDirectory, moment: Moment) -> Callable[[], bool]:
    file = run.journal if moment.entry else run.events
    known = -1
    seen = False

    def look() -> bool:
        nonlocal known, seen
        try:
            size = file.stat().st_size
        except FileNotFoundError:
            return False
        if size != known:
            known = size
            entries = parse_lines(file.read_bytes())
            seen = (
                len(entries) >= moment.entry if moment.entry else any(_is(moment, each) for each in entries)
            )
        return seen

    return look


def _is(moment: Moment, event: Event) -> bool:
    if moment.phase == VERDICT.phase:
        return bool(event["kind"] == "verdict")
    return event["kind"] == "phase" and (event["phase"], event["state"]) == (moment.phase, moment.state)
