"""Whole runs for benchmarks: an experiment from plan to verdict, and what it may have left behind."""

import asyncio
from pathlib import Path
from typing import Any

from orchestrator.backends.create import create_backend
from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import FinishedRun, Invocation
from orchestrator.planning.sweep import cells
from orchestrator.runs import processes
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.file_reference import FOLDER

OF_THE_HOST = (
    "the radio was late",
    "channel updates fell behind",
    "this machine was too busy",
    "the clock of this machine was set",
)
"""Reasons why a machine that is busy, or whose clock is being corrected, makes a run invalid: no good for
figures, but nothing lost.
"""


class Interrupted(Exception):
    """The user wants to stop: the run has ended in order, before its time."""


def described(document: dict[str, Any], folder: Path = Path()) -> Experiment:
    """Loads an experiment. ``folder``: what its file names are relative to."""
    return Experiment.model_validate(document, context={FOLDER: folder})


def perform(experiment: Experiment, root: Path, run_id: str) -> FinishedRun:
    """Runs it. Raises KeyboardInterrupt if the user interrupts; nothing is left then, either."""

    async def whole() -> FinishedRun:
        interruption = Interruption()
        with interruption.by_signals():
            return await performed(experiment, root, run_id, interruption)

    try:
        return asyncio.run(whole())
    except Interrupted:
        raise KeyboardInterrupt from None


async def performed(
    experiment: Experiment, root: Path, run_id: str, interruption: Interruption
) -> FinishedRun:
    """Does the same beside others that share ``interruption``. Raises Interrupted."""
    with Invocation.create(experiment, cells(experiment), root, run_id) as invocation:
        finished = await invocation.run(
            1, create_backend, interruption, lambda number, phase, fraction: None, ["benchmark"]
        )
    if finished.interrupted:
        raise Interrupted
    return finished.runs[0]


def own_reasons(run: FinishedRun) -> tuple[str, ...]:
    """Returns why the run is not valid, except that the machine was too busy."""
    return tuple(reason for reason in run.verdict.reasons if not reason.startswith(OF_THE_HOST))


def leftovers(run: FinishedRun) -> int:
    """Returns processes, namespaces and other things that should be gone."""
    run_id, path = run.directory.id, run.directory.path
    return len(processes.marked(run_id, path)) + len(network.leftovers(Mark(run_id, path)))
