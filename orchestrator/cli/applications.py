"""Finds the application that a verb is about: the only one of a run or plan, or the one --app names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from orchestrator.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.planning.application import AppPlan
    from orchestrator.planning.planned import PlannedRun
    from orchestrator.runs.manifest import RecordedApp
    from orchestrator.runs.run_directory import RunDirectory

T = TypeVar("T")
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app", help="The application, where an experiment has several.", show_default=False, metavar="NAME"
    ),
]


def planned_app(run: "PlannedRun", app: str | None) -> "AppPlan":
    return _chosen(run.apps, app, "the experiment")


def recorded_app(directory: "RunDirectory", app: str | None, verb: str = "") -> "RecordedApp":
    """``verb``: the method of ``Application`` that is asked for. If only one application of the run has it,
    that one is taken. Raises BadInput.
    """
    from orchestrator.runs.files import read_object
    from orchestrator.runs.manifest import apps_in

    if directory.is_sweep:
        members = ", ".join(member.id for member in directory.members()[:3])
        raise BadInput(f"{directory.id} is a sweep: name one of its runs ({members}, …)")
    apps = apps_in(read_object(directory.manifest))
    if not apps:
        raise BadInput(f"run {directory.id} has no deployment plan in manifest.json: did it begin?")
    able = {name: each for name, each in apps.items() if app is None and verb and defines(each.kind, verb)}
    return _chosen(able or apps, app, f"run {directory.id}")


@contextmanager
def with_failure(directory: "RunDirectory") -> Iterator[None]:
    """Adds to what cannot be said of a run why that run has no records, if it failed before it had any."""
    try:
        yield
    except BadInput as error:
        if why := _failure(directory):
            raise BadInput(f"{error}\n{why}") from None
        raise


def _failure(directory: "RunDirectory") -> str:
    from orchestrator.lifecycle.teardown import State, state_of
    from orchestrator.runs.files import read_object
    from orchestrator.runs.verdict import Judgement, read_verdict

    if directory.is_sweep or read_object(directory.manifest).get("measure_from_ns") is not None:
        return ""
    verdict = read_verdict(directory)
    if verdict is not None and verdict.verdict is Judgement.FAILED:
        return f"the run failed: {'; '.join(verdict.reasons)}"
    died = state_of(directory) is State.DEAD
    return f"the run died: its process is gone (rove down {directory.id} cleans up)" if died else ""


def defines(kind: str, verb: str) -> bool:
    """Whether applications of this kind define the verb themselves."""
    from orchestrator.planning.application import Application, application

    try:
        return getattr(type(application(kind)), verb) is not getattr(Application, verb)
    except BadInput:
        return False


def _chosen(apps: "Mapping[str, T]", app: str | None, whose: str) -> T:
    if app is None:
        if len(apps) > 1:
            raise BadInput(f"{whose} has several applications ({', '.join(apps)}): choose one with --app")
        return next(iter(apps.values()))
    if app not in apps:
        raise BadInput(f"--app {app}: {whose} has {', '.join(apps)}")
    return apps[app]
