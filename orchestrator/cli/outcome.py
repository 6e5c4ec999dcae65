"""How `rove run` and `rove sweep` end: the analysis, what is printed, and the exit code."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from msgspec import to_builtins
from rich.markup import escape

from orchestrator.cli.output import console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import command_line
from orchestrator.cli.verdicts import verdict_text
from orchestrator.errors import EXIT_INTERRUPTED
from orchestrator.runs.refused import refused_text

if TYPE_CHECKING:
    from orchestrator.cli.evaluation import Evaluated
    from orchestrator.lifecycle.invocation import Finished, Invocation
    from orchestrator.runs.run_directory import RunDirectory
    from orchestrator.spec.experiment import Experiment


def evaluated_or_none(
    invocation: "Invocation", finished: "Finished", experiment: "Experiment", analyze: bool, runs_dir: Path
) -> "tuple[Evaluated | None, bool]":
    """Analyses, unless the user does not want it or left; says whether the user left."""
    evaluated = None
    interrupted = finished.interrupted
    if analyze and not interrupted:
        try:
            evaluated = _evaluate(invocation, finished, experiment)
        except KeyboardInterrupt:
            interrupted = True
            again = command_line("analyze", invocation.directory.id, runs_dir)
            errors.print(f"Analysis interrupted; the data is kept: {again}", markup=False)
    return evaluated, interrupted


def conclude(
    invocation: "Invocation",
    finished: "Finished",
    evaluated: "Evaluated | None",
    experiment: "Experiment",
    interrupted: bool,
    runs_dir: Path,
    as_json: bool,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Prints the result and exits. ``more``: goes into the JSON document."""
    from orchestrator.backends.remote.ledger import waiting

    if evaluated is None:
        errors.print("Without the analysis nobody has looked whether anything was delivered.")
        if experiment.expect:
            errors.print("Without the analysis, what the file expects is not checked.")
    document = _document(invocation, finished, evaluated)
    for each in finished.runs:
        if nodes := waiting(each.directory.path):
            fetch = f"{command_line('collect', invocation.directory.id, runs_dir)} fetches it"
            whose = f"{each.directory.id}: still" if invocation.is_sweep else "Still"
            errors.print(f"{whose} on {', '.join(nodes)}: what they recorded; {fetch}.", markup=False)
    if as_json:
        print_json({**document, **more})
    else:
        _show(document, _summary(invocation.directory) if evaluated and evaluated.report else None)
    verdict = (evaluated or finished).verdict.verdict
    raise typer.Exit(EXIT_INTERRUPTED if interrupted else verdict.exit_code)


def _evaluate(invocation: "Invocation", finished: "Finished", experiment: "Experiment") -> "Evaluated":
    from orchestrator.cli.evaluation import evaluate

    with step(errors, "analysis") as progress:
        return evaluate(invocation, finished, experiment.expect, progress)


def _document(
    invocation: "Invocation", finished: "Finished", evaluated: "Evaluated | None"
) -> dict[str, Any]:
    runs = (evaluated or finished).runs
    summaries = evaluated.summaries if evaluated else {}
    return {
        "invocation": invocation.directory.id,
        "directory": str(invocation.directory.path),
        "verdict": (evaluated or finished).verdict.verdict,
        "reasons": list((evaluated or finished).verdict.reasons),
        "notes": list((evaluated or finished).verdict.notes),
        "refused": [to_builtins(each) for run in runs for each in run.verdict.refused],
        "interventions": [each for run in runs for each in run.verdict.interventions],
        "runs": [
            {
                "run": run.directory.id,
                "directory": str(run.directory.path),
                "factors": run.factors,
                "verdict": run.verdict.verdict,
                "reasons": list(run.verdict.reasons),
                "summary": summaries.get(run.directory.id),
            }
            for run in runs
        ],
        "report": str(evaluated.report) if evaluated and evaluated.report else None,
    }


def _summary(directory: "RunDirectory") -> dict[str, Any] | None:
    """Returns what was found, unless it is a single run that failed: that must not look like a result."""
    from orchestrator.cli.results import has_figures
    from orchestrator.runs.files import read_json

    summary = read_json(directory.summary)
    return summary if summary and ("cells" in summary or has_figures(directory, summary)) else None


def _show(document: dict[str, Any], summary: dict[str, Any] | None) -> None:
    """Prints the result. ``summary``: of the whole, if analysed. Names only the bad runs of a sweep."""
    if summary is not None:
        from orchestrator.cli.results import cells_of, notes, show_results

        show_results(cells_of(summary))
        for note in notes(summary):
            console.print(note, markup=False, soft_wrap=True)
    reasons = document["reasons"]
    if len(document["runs"]) > 1:
        for run in document["runs"]:
            reasons = [reason for reason in reasons if not reason.startswith(f"{run['run']}: ")]
            if run["verdict"] != "valid":
                factors = escape(" ".join(f"{name}={value}" for name, value in run["factors"].items()))
                console.print(f"{run['run']}  {factors}  {verdict_text(run['verdict'])}", soft_wrap=True)
                _show_reasons(run["reasons"])
    console.print(f"verdict  {verdict_text(document['verdict'])}")
    _show_reasons(reasons)
    for note in document["notes"]:
        console.print(f"note     {note}", style="yellow", markup=False, soft_wrap=True)
    for done in document["interventions"]:
        console.print(f"by hand  {done}", markup=False, soft_wrap=True)
    if refused := refused_text(document["refused"]):
        console.print(f"refused  {refused}", markup=False, soft_wrap=True)
    where = document["report"] or document["directory"]
    console.print(f"{'report ' if document['report'] else 'data   '}  {where}", markup=False, soft_wrap=True)


def _show_reasons(reasons: Sequence[str]) -> None:
    for reason in reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
