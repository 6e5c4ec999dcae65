"""``backend: auto``: chooses the first backend that this machine can run, real time first; says why."""

from typing import NamedTuple

from orchestrator.errors import BadInput
from orchestrator.spec.backends import AUTO, BACKENDS, choosable
from orchestrator.spec.experiment import Experiment


class Choice(NamedTuple):
    backend: str
    why: str

    def __str__(self) -> str:
        return f"Backend {self.backend}: {self.why}"


def with_backend(experiment: Experiment) -> tuple[Experiment, Choice | None]:
    """Returns the experiment with the chosen backend, and the choice; None if the file names a backend."""
    if experiment.backend != AUTO:
        return experiment, None
    choice = choose()
    return experiment.model_copy(update={"backend": choice.backend}), choice


def choose() -> Choice:
    passed_over: list[str] = []
    for name in choosable():
        kind = BACKENDS[name]
        assert kind.lacking is not None, "else it is not among those to choose from"
        if not (missing := kind.lacking()):
            return Choice(name, ", ".join([kind.chosen_because or kind.summary, *passed_over]))
        passed_over += missing
    raise BadInput(f"backend auto: this machine can run none ({'; '.join(passed_over)})")
