"""`rove analyze`: telemetry in, tables and figures of merit out."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.cli.results import results_table
from orchestrator.lifecycle.run_directory import resolve

RunReferences = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help=RUN_HELP, autocompletion=complete_run, show_default=False),
]


def analyze(runs: RunReferences, runs_dir: RunsDir = DEFAULT_ROOT, as_json: JsonFlag = False) -> None:
    """Turn the telemetry of runs into tables and results, in Spark.

    Writes summary.json into each run's directory, and Parquet tables to .tables beside the experiments.
    What has not changed since the last time is not read again.

    [bold]Examples[/]

      rove analyze quickstart            the latest run of this experiment

      rove analyze latest --json

      rove analyze runs/quickstart/20260301-120000-1a2b
    """
    from orchestrator.analytics import pipeline

    directories = [resolve(reference, runs_dir) for reference in runs]
    with step(errors, "analysis") as progress:
        summaries = pipeline.analyze([directory.path for directory in directories], progress)
    if as_json:
        print_json({"summaries": summaries})
        return
    if alone := [summary for summary in summaries if "cells" not in summary]:
        console.print(results_table(alone))
    for sweep in (summary for summary in summaries if "cells" in summary):
        console.print(cells_table(sweep["cells"]))
    for directory in directories:
        console.print(f"summary  {directory.summary}", markup=False, soft_wrap=True)


def cells_table(cells: Sequence[Mapping[str, Any]]) -> Table:
    """One row a cell: mean ± standard deviation over seeds; × relates it to the fewest replicas."""
    factors = list({name: None for cell in cells for name in cell["factors"]})
    compared = any("versus" in cell for cell in cells)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in factors:
        table.add_column(name.rpartition(".")[2], justify="right", no_wrap=True)
    for heading in ("runs", "tuples/s", "p50 ms", "p95 ms", "loss %", "switches"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("× tuples/s", "× p95") if compared else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for cell in cells:
        metrics, ratios = cell["metrics"], cell.get("versus", {}).get("ratios", {})
        gains = (ratios.get("throughput_fps"), ratios.get("latency_p95_s")) if compared else ()
        table.add_row(
            *(str(cell["factors"].get(name, "–")) for name in factors),
            str(cell["n"]),
            _spread(metrics["throughput_fps"], 1, 2),
            _spread(metrics["latency_p50_s"], 1e3, 1),
            _spread(metrics["latency_p95_s"], 1e3, 1),
            _spread(metrics["loss_ratio"], 100, 1),
            _spread(metrics["switches"], 1, 0),
            *(_spread(gain, 1, 2) for gain in gains),
        )
    return table


def _spread(spread: Mapping[str, Any] | None, factor: float, digits: int) -> str:
    if not spread or spread["mean"] is None:
        return "–"
    text = f"{spread['mean'] * factor:.{digits}f}"
    return text if spread["sd"] is None else f"{text} ± {spread['sd'] * factor:.{digits}f}"
