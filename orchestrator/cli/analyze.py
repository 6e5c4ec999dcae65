"""`rove analyze`: telemetry in, tables and figures of merit out."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.cli.spark_options import MasterOption, SparkConf, chosen_session
from orchestrator.errors import EXIT_INTERRUPTED, BadInput
from orchestrator.runs.run_directory import resolve

RunReferences = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
]


def analyze(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="All runs that are new or changed since the last time.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="The same, and go on: each run as soon as it has ended.")
    ] = False,
    publish: Annotated[
        str | None,
        typer.Option(
            "--publish",
            metavar="URL",
            help="Also write the tables there, through Spark: hdfs://…, s3a://…, file:///…",
            show_default=False,
        ),
    ] = None,
    master: MasterOption = None,
    conf: SparkConf = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Turn the telemetry of runs into tables and results, in Spark.

    Writes summary.json into each run's directory, and Parquet tables to .tables beside the experiments.
    What has not changed since the last time is not read again.

    With --watch one Spark stays and takes in every run under the runs' directory once it has ended, within
    seconds, until Ctrl-C; runs in virtual time also while they go on. --new does so for what is there, and
    ends. With --json each of both prints one line for a run.

    [bold]Examples[/]

      rove analyze quickstart            the latest run of this experiment

      rove analyze latest --json

      rove analyze runs/quickstart/20260301-120000-1a2b

      rove analyze --watch               in another terminal, while runs go on

      rove analyze latest --master spark://head:7077    on a cluster

      rove analyze latest --publish s3a://lab/rove      tables also to a store
    """
    if new or watch:
        if runs or publish:
            raise BadInput(
                f"--{'watch' if watch else 'new'} takes in all runs of a directory: name it with --runs-dir,"
                " and leave RUN and --publish out"
            )
        from orchestrator.cli.analyze_watch import take_in

        take_in(runs_dir, master, conf, as_json, and_go_on=watch)
        return
    if not runs:
        raise BadInput("which runs? Name some (latest, an experiment, an id), or give --new or --watch")
    _analyze_some(runs, publish, master, conf, runs_dir, as_json)


def _analyze_some(
    runs: list[str],
    publish: str | None,
    master: str | None,
    conf: list[str] | None,
    runs_dir: Path,
    as_json: bool,
) -> None:
    from orchestrator.analytics import pipeline
    from orchestrator.analytics.publishing import parse_target, publish_tables, require_elsewhere
    from orchestrator.cli.results import show_summaries

    target = parse_target(publish) if publish else None
    directories = [resolve(reference, runs_dir) for reference in runs]
    places = [each.path for each in directories]
    if target:
        require_elsewhere(target, places)
    try:
        with (
            step(errors, "analysis") as progress,
            chosen_session(master, conf, directories, needed=target is not None) as spark,
        ):
            summaries = pipeline.analyze(places, progress, spark=spark)
            if target and spark:
                progress("publishing tables", 0.98)
                publish_tables(spark, places, target)
    except KeyboardInterrupt:
        errors.print("Analysis interrupted; the data is kept.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json({"summaries": summaries} | ({"published": target.url} if target else {}))
        return
    show_summaries(list(zip(directories, summaries, strict=True)))
    for directory in directories:
        console.print(f"summary  {directory.summary}", markup=False, soft_wrap=True)
    if target:
        console.print(f"tables   {target.url}", markup=False, soft_wrap=True)
