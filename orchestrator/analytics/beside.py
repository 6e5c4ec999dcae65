"""Prepares runs and sweeps for being put side by side: reads their summaries and parameters, and analyses
those that have none yet and can be used.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.errors import BadInput
from orchestrator.results.inputs import RunInput, runs_in
from orchestrator.results.side_by_side import Member, common_apps, compared, grouped, parameters_of
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import CHECKOUT
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.yaml_source import read_document

Analyse = Callable[[Sequence[Path]], object]


def side_by_side(
    directories: Sequence[RunDirectory], labels: Sequence[str], analyse: Analyse
) -> dict[str, Any]:
    """Returns the document of the comparison. ``analyse`` is called with the usable runs that lack a summary.
    Of those that are left out, such as failed ones, none is needed.
    """
    if labels and len(labels) != len(directories):
        raise BadInput(
            f"{len(labels)} labels for {len(directories)} things to compare: give each one, or none"
        )
    if len(set(labels)) < len(labels):
        raise BadInput("two labels are the same: rows could not be told apart")
    members = _members(directories)
    # By what was planned: whether anything can be compared is said before Spark starts.
    common_apps(grouped([_member(*each, _planned(each[2])) for each in members], labels))
    if missing := [
        run.directory.path for _, _, run in members if run.is_usable and not _summary(run.directory)
    ]:
        analyse(missing)
    return compared(grouped([_member(*each, _known(each[2])) for each in members], labels))


def _members(directories: Sequence[RunDirectory]) -> list[tuple[int, RunDirectory, RunInput]]:
    """Returns every run once, with the number of the first thing it belongs to, and that thing."""
    found = {
        run.directory.path: (number, run)
        for number, directory in reversed(list(enumerate(directories)))
        for run in runs_in(directory.path)
    }
    members = sorted(found.values(), key=lambda each: (each[0], each[1].run))
    return [(number, directories[number], run) for number, run in members]


def _planned(run: RunInput) -> dict[str, Any]:
    """Returns what is known of a summary before the analysis."""
    apps = {name: {"kind": app.kind, "metrics": {}} for name, app in run.apps.items()}
    return {"run": run.run, "seed": run.manifest.get("seed"), "factors": run.factors, "apps": apps}


def _summary(directory: RunDirectory) -> dict[str, Any]:
    found = read_object(directory.summary)
    return found if isinstance(found.get("metrics"), dict) else {}


def _known(run: RunInput) -> dict[str, Any]:
    return _summary(run.directory) or _planned(run)


def _member(number: int, directory: RunDirectory, run: RunInput, summary: dict[str, Any]) -> Member:
    try:
        spec = read_document(run.directory.spec).value
    except BadSpec:
        spec = {}  # the run of somebody who deleted it: its factors are known all the same
    checkout = run.manifest.get(CHECKOUT)
    commit = str(checkout.get("commit"))[:10] if isinstance(checkout, Mapping) else ""
    parameters = parameters_of(spec, run.factors, commit)
    name = f"{directory.experiment} {directory.id}"
    return Member(number, name, summary, run.is_usable, parameters)
