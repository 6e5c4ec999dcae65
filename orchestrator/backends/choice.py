"""``backend: auto``: namespaces where this machine permits them, else virtual time; and why."""

import os
from typing import Literal, NamedTuple

from orchestrator.backends.netns.checks import Check, checks
from orchestrator.spec.experiment import Experiment

LEAST_CORES = 2


class Choice(NamedTuple):
    backend: Literal["netns", "sim"]
    why: str

    def __str__(self) -> str:
        return f"Backend {self.backend}: {self.why}"


def with_backend(experiment: Experiment) -> tuple[Experiment, Choice | None]:
    """The experiment with a backend that it can run on; None where the file names one."""
    if experiment.backend != "auto":
        return experiment, None
    choice = choose(len(os.sched_getaffinity(0)), checks())
    return experiment.model_copy(update={"backend": choice.backend}), choice


def choose(cores: int, found: list[Check]) -> Choice:
    lacking = [f"{check.name}: {check.advice}" for check in found if check.required and not check.ok]
    if lacking:
        return Choice("sim", f"virtual time, for lack of what namespaces need here ({'; '.join(lacking)})")
    if cores < LEAST_CORES:
        return Choice("sim", "virtual time, for on one core the radio would be late")
    return Choice("netns", "this machine permits network namespaces; real time")
