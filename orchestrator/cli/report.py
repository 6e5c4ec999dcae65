"""`rove report`: a self-contained HTML page about a run or a sweep."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.analyze import RunReferences
from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RunsDir, require_folder
from orchestrator.cli.spark_options import MasterOption, SparkConf, chosen_session
from orchestrator.errors import EXIT_INTERRUPTED, BadInput
from orchestrator.runs.run_directory import RunDirectory, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPLAY = "replay.html"


def report(
    runs: RunReferences,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Instead of report.html in the run's directory.", dir_okay=False),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Write a page that plays the run instead: replay.html, without Spark."),
    ] = False,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Also write its figures as SVG and PNG and its tables as CSV: report-files/."
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    master: MasterOption = None,
    conf: SparkConf = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Write a report with tables and figures, after analysing what has not been analysed yet.

    The page needs no network and no other file: mail it, archive it, open it on a phone. With --replay it
    plays the run as the live page showed it, with some of its pictures.

    [bold]Examples[/]

      rove report quickstart --open

      rove report latest --output result.html

      rove report quickstart --files

      rove report latest --replay --output moment.html
    """
    if output is not None and len(runs) > 1:
        raise BadInput("--output takes one run; without it, each report goes to its run's directory")
    require_folder(output)
    directories = [resolve(reference, runs_dir) for reference in runs]
    if files and replay:
        raise BadInput("--files writes what the report shows: a replay has none")
    written: list[Path] = []
    try:
        if replay:
            pages = [_replay(each, output) for each in directories]
        else:
            with chosen_session(master, conf, directories) as spark:
                pages, written = _reports(directories, output, files, spark)
    except KeyboardInterrupt:
        errors.print("Report interrupted; the data is kept.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        document = {"replays" if replay else "reports": [str(page) for page in pages]}
        print_json(document | ({"files": [str(file) for file in written]} if files else {}))
    else:
        for page in pages:
            console.print(f"{'replay' if replay else 'report'}  {page}", markup=False, soft_wrap=True)
        for folder in dict.fromkeys(file.parent for file in written):
            console.print(f"files   {folder}", markup=False, soft_wrap=True)
    if show:
        for page in pages:
            webbrowser.open(page.resolve().as_uri())


def _reports(
    directories: Sequence[RunDirectory], output: Path | None, files: bool, spark: "SparkSession | None"
) -> tuple[list[Path], list[Path]]:
    """Returns the pages, and the files beside them."""
    from orchestrator.analytics import pipeline

    paths = [directory.path for directory in directories]
    with step(errors, "report") as progress:
        analysis = pipeline.analysed(paths, progress, spark=spark)
        analysis.write_summaries()
        progress("writing reports", 0.95)
        pages = [analysis.write_report(path, output) for path in paths]
        written = [
            file
            for path, page in zip(paths, pages, strict=True)
            if files
            for file in analysis.write_files(path, page.with_name(f"{page.stem}-files"))
        ]
        progress("done", 1.0)
    return pages, written


def _replay(directory: RunDirectory, output: Path | None) -> Path:
    from orchestrator.live.replay import write_replay

    if directory.is_sweep:
        raise BadInput(f"{directory.id} is a sweep: name one of its runs, such as {directory.id}.01")
    with step(errors, "replay") as progress:
        written = write_replay(directory, output or directory.path / REPLAY, progress)
        progress("done", 1.0)
    if written.period:
        text = (
            f"The run is long: positions, links and the like are in the file every {written.period:g} s only."
        )
        errors.print(text, markup=False)
    return written.path
