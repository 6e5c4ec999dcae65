"""`rove report`: a self-contained HTML page about a run or a sweep."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.analyze import RunReferences
from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RunsDir
from orchestrator.errors import EXIT_INTERRUPTED, BadInput
from orchestrator.runs.run_directory import resolve


def report(
    runs: RunReferences,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Instead of report.html in the run's directory.", dir_okay=False),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Write a report with tables and figures, after analysing what has not been analysed yet.

    The page needs no network and no other file: mail it, archive it, open it on a phone.

    [bold]Examples[/]

      rove report quickstart --open

      rove report latest --output result.html
    """
    if output is not None and len(runs) > 1:
        raise BadInput("--output takes one run; without it, each report goes to its run's directory")
    from orchestrator.analytics import pipeline

    directories = [resolve(reference, runs_dir).path for reference in runs]
    try:
        with step(errors, "report") as progress:
            analysis = pipeline.analysed(directories, progress)
            analysis.write_summaries()
            progress("writing reports", 0.95)
            pages = [analysis.write_report(directory, output) for directory in directories]
            progress("done", 1.0)
    except KeyboardInterrupt:
        errors.print("Report interrupted; the data is kept.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json({"reports": [str(page) for page in pages]})
    else:
        for page in pages:
            console.print(f"report  {page}", markup=False, soft_wrap=True)
    if show:
        for page in pages:
            webbrowser.open(page.resolve().as_uri())
