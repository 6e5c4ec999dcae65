"""`rove run`: an experiment file in, measured results and a report out."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins
from rich.markup import escape

from orchestrator.cli.output import JsonFlag, console, errors, print_json, rove_command
from orchestrator.cli.progress import RunProgress, step
from orchestrator.cli.references import DEFAULT_ROOT, ExperimentFile, RunsDir, command_line
from orchestrator.cli.verdicts import verdict_text
from orchestrator.errors import EXIT_INTERRUPTED, BadInput, RoveError
from orchestrator.runs.phases import Urgency
from orchestrator.runs.refused import refused_text

if TYPE_CHECKING:
    from orchestrator.backends.choice import Choice
    from orchestrator.cli.evaluation import Evaluated
    from orchestrator.lifecycle.invocation import Finished, Invocation
    from orchestrator.live.server.beside import PageBeside
    from orchestrator.planning.sweep import Cell
    from orchestrator.spec.experiment import Experiment

LARGEST_SEED = 2**53
_ON_REQUEST = {
    Urgency.IN_ORDER: "Stopping in order; data is kept. Once more to tear down at once.",
    Urgency.AT_ONCE: "Tearing down at once.",
}


def run(
    context: typer.Context,
    file: ExperimentFile,
    runs_dir: RunsDir = DEFAULT_ROOT,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", help="Instead of one made from date and time.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs of a sweep at the same time.", show_default="cores"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=LARGEST_SEED, help="Instead of the file's.", show_default=False),
    ] = None,
    analyze: Annotated[bool, typer.Option("--analyze/--no-analyze", help="Analyse in Spark.")] = True,
    ui: Annotated[bool, typer.Option("--ui", help="Show the run on a web page while it goes on.")] = False,
    ui_stay: Annotated[
        bool, typer.Option("--ui-stay", help="The same, and leave the page until Ctrl-C.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment, analyse it in Spark and write a report.

    The first Ctrl-C stops in order and keeps the data, the second tears down at once.
    Exit code: 0 valid, 1 failed, 2 bad input, 3 invalid, 130 interrupted.

    [bold]Examples[/]

      rove run experiments/quickstart.yaml

      rove run experiments/quickstart.yaml --seed 7 --jobs 1

      rove run experiments/quickstart.yaml --no-analyze --json

      rove run experiments/quickstart.yaml --ui
    """
    # Imported here: completion and --help must not wait for them.
    from orchestrator.backends.choice import with_backend
    from orchestrator.backends.remote.ledger import waiting
    from orchestrator.lifecycle.interruption import signals_as_keyboard_interrupt
    from orchestrator.lifecycle.invocation import Invocation
    from orchestrator.planning.load import load_planned
    from orchestrator.runs.files import read_json
    from orchestrator.runs.run_directory import create, create_new
    from orchestrator.spec.backends import BACKENDS

    choice: Choice | None = None

    def changed(read: "Experiment") -> "Experiment":
        nonlocal choice
        read, choice = with_backend(_with_seed(read, seed))
        return read

    experiment, cells = load_planned(file, changed)
    _require_applications(cells)
    if experiment.traits.exclusive and jobs is not None and jobs > 1 and len(cells) > 1:
        raise BadInput("these runs need the same nodes, and cannot go on at the same time: leave out --jobs")
    BACKENDS[experiment.backend].prepare([cell.experiment for cell in cells], rove_command())
    if analyze:
        _require_java()
    with signals_as_keyboard_interrupt(), ExitStack() as held:

        def create_invocation() -> Invocation:
            name = experiment.name
            directory = create(runs_dir, name, run_id) if run_id else create_new(runs_dir, name)
            invocation = held.enter_context(Invocation(experiment, cells, directory))
            if choice is not None:
                errors.print(str(choice), markup=False)
                invocation.events.add("backend", backend=choice.backend, why=choice.why)
            return invocation

        def begun(invocation: Invocation, say: Callable[[str], None]) -> None:
            if ui or ui_stay:
                page = _page(invocation, say)
                # After all else, so that browsers hear of the run's end.
                again = command_line("serve", invocation.directory.id, runs_dir)
                context.call_on_close(lambda: _end(page, ui_stay, again))

        invocation, finished = asyncio.run(_run(create_invocation, experiment, cells, jobs, begun))
        evaluated = None
        interrupted = finished.interrupted
        if analyze and not interrupted:
            try:
                evaluated = _evaluate(invocation, finished, experiment)
            except KeyboardInterrupt:
                interrupted = True
                again = command_line("analyze", invocation.directory.id, runs_dir)
                errors.print(f"Analysis interrupted; the data is kept: {again}", markup=False)
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
        print_json(document)
    else:
        _show(document, read_json(invocation.directory.summary) if evaluated and evaluated.report else None)
    verdict = (evaluated or finished).verdict.verdict
    raise typer.Exit(EXIT_INTERRUPTED if interrupted else verdict.exit_code)


def _page(invocation: "Invocation", say: Callable[[str], None]) -> "PageBeside":
    """Starts the page of this run as a process of its own."""
    from orchestrator.live.server.beside import PageBeside, free_port

    where = str(invocation.directory.path)
    command = rove_command("serve", where, "--port", str(free_port()), "--json", "--while-input")
    return PageBeside(command, say)


def _end(page: "PageBeside", stay: bool, again: str) -> None:
    from orchestrator.lifecycle.interruption import last_work

    # The run is over: however often somebody asks to stop now, its exit code stays.
    with last_work() as asked:
        stays = stay
        while stays and not page.url:  # a short run may end before its page has begun
            stays = not asked and page.goes_on()
        if stays:
            errors.print(f"The page stays at {page.url} until Ctrl-C.", markup=False)
        while stays:
            stays = not asked and page.goes_on()
        page.close()
        errors.print(f"To see it again: {again}", markup=False, soft_wrap=True)


def _with_seed(experiment: "Experiment", seed: int | None) -> "Experiment":
    if seed is None:
        return experiment
    if "seed" in experiment.sweep:
        raise BadInput("--seed cannot be used here: the file's sweep already varies the seed")
    return experiment.model_copy(update={"seed": seed})


def _require_applications(cells: "Sequence[Cell]") -> None:
    """Before anything is created."""
    from orchestrator.planning.application import application

    plans = [plan for cell in cells for plan in cell.run.apps.values()]
    for kind in dict.fromkeys(plan.kind for plan in plans):
        application(kind).require([plan for plan in plans if plan.kind == kind])


def _require_java() -> None:
    """Checks for Java now rather than after an hour of measuring."""
    from orchestrator.spark.java import find_java

    try:
        find_java()
    except RoveError as error:
        raise RoveError(f"{error}\nOr run without the analysis: --no-analyze") from error


async def _run(
    create: "Callable[[], Invocation]",
    experiment: "Experiment",
    cells: "Sequence[Cell]",
    jobs: int | None,
    begun: "Callable[[Invocation, Callable[[str], None]], None]",
) -> "tuple[Invocation, Finished]":
    """Handles signals before anything is created, so that everything created is taken down and judged."""
    from orchestrator.backends.create import create_backend
    from orchestrator.lifecycle.interruption import Interruption
    from orchestrator.lifecycle.invocation import default_jobs
    from orchestrator.live.door import open_door

    progress = RunProgress(errors, [_label(cell) for cell in cells], experiment.warmup, experiment.duration)
    interruption = Interruption(lambda urgency: progress.say(_ON_REQUEST[urgency]))
    with interruption.by_signals(), progress.shown():
        invocation = create()
        progress.say(f"Run {invocation.directory.id} in {invocation.directory.path}")
        progress.watch(invocation.path_of)
        begun(invocation, progress.say)
        finished = await invocation.run(
            jobs=jobs or default_jobs(experiment, len(cells)),
            create_backend=create_backend,
            interruption=interruption,
            observe=progress.observe,
            command=["rove", *sys.argv[1:]],
            watch=open_door,
        )
    return invocation, finished


def _label(cell: "Cell") -> str:
    return " ".join(f"{name}={value}" for name, value in cell.factors.items()) or cell.experiment.name


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
