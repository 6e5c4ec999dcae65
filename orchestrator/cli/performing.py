"""What `rove run` and `rove sweep` share: checks before anything is created, and the way through the runs."""

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from orchestrator.cli.output import errors, rove_command
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs.phases import Phase, Urgency

if TYPE_CHECKING:
    from orchestrator.backends.choice import Choice
    from orchestrator.lifecycle.invocation import Elsewhere, Finished, Invocation
    from orchestrator.lifecycle.schedule import Standing
    from orchestrator.planning.sweep import Cell
    from orchestrator.spec.experiment import Experiment

_SECRET = re.compile(
    r"((?:--spark-conf=)?spark\.[^=]*(?:secret|password|token|access\.?key)[^=]*=).+",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that Spark itself does not show either."""
_ON_REQUEST = {
    Urgency.IN_ORDER: "Stopping in order; data is kept. Once more to tear down at once.",
    Urgency.AT_ONCE: "Tearing down at once.",
}


@dataclass(frozen=True)
class Prepared:
    """An experiment that can be run. ``choice``: the backend that ``auto`` stands for, and why."""

    experiment: "Experiment"
    cells: "tuple[Cell, ...]"
    choice: "Choice | None"


def prepare(
    file: Path, jobs: int | None, change: "Callable[[Experiment], Experiment]" = lambda read: read
) -> Prepared:
    """Loads, plans and checks; creates nothing. Raises BadInput, RoveError."""
    from orchestrator.backends.choice import with_backend
    from orchestrator.planning.load import load_planned
    from orchestrator.spec.backends import BACKENDS

    choice: Choice | None = None

    def changed(read: "Experiment") -> "Experiment":
        nonlocal choice
        read, choice = with_backend(change(read))
        return read

    experiment, cells = load_planned(file, changed)
    _require_applications(cells)
    if experiment.traits.exclusive and jobs is not None and jobs > 1 and len(cells) > 1:
        raise BadInput("these runs need the same nodes, and cannot go on at the same time: leave out --jobs")
    BACKENDS[experiment.backend].prepare([cell.experiment for cell in cells], rove_command())
    return Prepared(experiment, cells, choice)


def _require_applications(cells: "Sequence[Cell]") -> None:
    """Before anything is created."""
    from orchestrator.planning.application import application

    plans = [plan for cell in cells for plan in cell.run.apps.values()]
    for kind in dict.fromkeys(plan.kind for plan in plans):
        application(kind).require([plan for plan in plans if plan.kind == kind])


def require_java() -> None:
    """Checks for Java now rather than after an hour of measuring."""
    from orchestrator.spark.java import find_java

    try:
        find_java()
    except RoveError as error:
        raise RoveError(f"{error}\nOr run without the analysis: --no-analyze") from error


def note_choice(invocation: "Invocation", prepared: Prepared) -> None:
    """Says and records which backend ``auto`` stands for."""
    if prepared.choice is not None:
        errors.print(str(prepared.choice), markup=False)
        invocation.events.add("backend", backend=prepared.choice.backend, why=prepared.choice.why)


class Display(Protocol):
    """Shows how far the runs are."""

    def shown(self) -> AbstractContextManager[None]: ...

    def say(self, text: str) -> None: ...

    def watch(self, directory_of: Callable[[int], Path]) -> None: ...

    def observe(self, number: int, phase: Phase, within: float) -> None: ...

    def tell(self, standing: "Standing") -> None: ...


def perform(
    create: "Callable[[], Invocation]",
    prepared: Prepared,
    display: Display,
    jobs: int | None,
    begun: "Callable[[Invocation], None]" = lambda invocation: None,
    elsewhere: "Elsewhere | None" = None,
    most_failures: int | None = None,
) -> "tuple[Invocation, Finished]":
    """Runs what has no result yet. Handles signals before anything is created, so that everything created is
    taken down and judged."""
    from orchestrator.backends.create import create_backend
    from orchestrator.lifecycle.interruption import Interruption
    from orchestrator.lifecycle.invocation import default_jobs
    from orchestrator.live.door import open_door

    async def run() -> "tuple[Invocation, Finished]":
        interruption = Interruption(lambda urgency: display.say(_ON_REQUEST[urgency]))
        with interruption.by_signals(), display.shown():
            invocation = create()
            display.say(f"Run {invocation.directory.id} in {invocation.directory.path}")
            display.watch(invocation.path_of)
            begun(invocation)
            finished = await invocation.run(
                jobs=jobs or default_jobs(prepared.cells),
                create_backend=create_backend,
                interruption=interruption,
                observe=display.observe,
                command=["rove", *without_secrets(sys.argv[1:])],
                watch=open_door,
                elsewhere=elsewhere,
                most_failures=most_failures,
                tell=display.tell,
            )
        return invocation, finished

    return asyncio.run(run())


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Returns a command line as a run's manifest may keep it, and others may read it."""
    return [_SECRET.sub(r"\1…", argument) for argument in arguments]


def label(cell: "Cell") -> str:
    return " ".join(f"{name}={value}" for name, value in cell.factors.items()) or cell.experiment.name
