"""`rove analyze`: telemetry in, tables and figures of merit out."""

from typing import Annotated

import typer

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.cli.spark_options import MasterOption, SparkConf, chosen_session
from orchestrator.errors import EXIT_INTERRUPTED
from orchestrator.runs.run_directory import resolve

RunReferences = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help=RUN_HELP, autocompletion=complete_run, show_default=False),
]


def analyze(
    runs: RunReferences,
    master: MasterOption = None,
    conf: SparkConf = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Turn the telemetry of runs into tables and results, in Spark.

    Writes summary.json into each run's directory, and Parquet tables to .tables beside the experiments.
    What has not changed since the last time is not read again.

    [bold]Examples[/]

      rove analyze quickstart            the latest run of this experiment

      rove analyze latest --json

      rove analyze runs/quickstart/20260301-120000-1a2b

      rove analyze latest --master spark://head:7077    on a cluster that shares this file system
    """
    from orchestrator.analytics import pipeline
    from orchestrator.cli.results import cells_of, show_results

    directories = [resolve(reference, runs_dir) for reference in runs]
    try:
        with (
            step(errors, "analysis") as progress,
            chosen_session(master, conf, directories) as spark,
        ):
            summaries = pipeline.analyze([each.path for each in directories], progress, spark=spark)
    except KeyboardInterrupt:
        errors.print("Analysis interrupted; the data is kept.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json({"summaries": summaries})
        return
    alone = [cell for summary in summaries if "cells" not in summary for cell in cells_of(summary)]
    sweeps = [cells_of(summary) for summary in summaries if "cells" in summary]
    for rows in ([alone] if alone else []) + sweeps:
        show_results(rows)
    for directory in directories:
        console.print(f"summary  {directory.summary}", markup=False, soft_wrap=True)
