"""`rove run`: an experiment file in, measured results and a report out."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import conclude, evaluated_or_none
from orchestrator.cli.output import JsonFlag, errors, rove_command
from orchestrator.cli.performing import label, note_choice, perform, prepare, require_java
from orchestrator.cli.progress import RunProgress
from orchestrator.cli.references import DEFAULT_ROOT, ExperimentFile, RunsDir, command_line
from orchestrator.errors import BadInput

if TYPE_CHECKING:
    from orchestrator.lifecycle.invocation import Invocation
    from orchestrator.live.server.beside import PageBeside
    from orchestrator.spec.experiment import Experiment

LARGEST_SEED = 2**53


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
    from orchestrator.lifecycle.interruption import signals_as_keyboard_interrupt
    from orchestrator.lifecycle.invocation import Invocation
    from orchestrator.runs.run_directory import create, create_new

    prepared = prepare(file, jobs, lambda read: _with_seed(read, seed))
    experiment, cells = prepared.experiment, prepared.cells
    if analyze:
        require_java()
    display = RunProgress(errors, [label(cell) for cell in cells], experiment.warmup, experiment.duration)
    with signals_as_keyboard_interrupt(), ExitStack() as held:

        def create_invocation() -> Invocation:
            name = experiment.name
            directory = create(runs_dir, name, run_id) if run_id else create_new(runs_dir, name)
            invocation = held.enter_context(Invocation(experiment, cells, directory))
            note_choice(invocation, prepared)
            return invocation

        def begun(invocation: Invocation) -> None:
            if ui or ui_stay:
                page = _page(invocation, display.say)
                # After all else, so that browsers hear of the run's end.
                again = command_line("serve", invocation.directory.id, runs_dir)
                context.call_on_close(lambda: _end(page, ui_stay, again))

        invocation, finished = perform(create_invocation, prepared, display, jobs, begun)
        evaluated, interrupted = evaluated_or_none(invocation, finished, experiment, analyze, runs_dir)
    conclude(invocation, finished, evaluated, experiment, interrupted, runs_dir, as_json)


def _page(invocation: "Invocation", say: Callable[[str], None]) -> "PageBeside":
    """Starts the page of this run as a process of its own."""
    from orchestrator.live.server.beside import PageBeside

    where = str(invocation.directory.path)
    command = rove_command("serve", where, "--json", "--while-input")
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
