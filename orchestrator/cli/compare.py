"""`rove compare`: any runs or sweeps side by side, paired where seeds match."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.progress import step
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.errors import EXIT_INTERRUPTED
from orchestrator.runs.run_directory import resolve

_NOTHING = "–"


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ],
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", help="What to call each of them, in order; may be repeated.", show_default=False
        ),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Put runs and sweeps side by side: means, ratios to the first with 95 % intervals, and a plain sentence.

    Runs that differ in their seed only are one row; rows are called by the parameters that differ, or by
    --label. Ratios are of runs with the same seed. What is not analysed yet is analysed first.

    [bold]Examples[/]

      rove compare quickstart                           the cells of a sweep

      rove compare olsr aodv

      rove compare 20260301-120000-1a2b latest --label before --label after --json
    """
    from orchestrator.analytics.beside import side_by_side

    directories = [resolve(reference, runs_dir) for reference in runs]
    document = side_by_side(directories, label or [], _analyse)
    if as_json:
        print_json(document)
        return
    _show(document)


def _analyse(directories: Sequence[Path]) -> None:
    from orchestrator.analytics import pipeline

    try:
        with step(errors, "analysis") as progress:
            pipeline.analyze(directories, progress)
    except KeyboardInterrupt:
        errors.print("Analysis interrupted; the data is kept.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _show(document: Mapping[str, Any]) -> None:
    groups = document["groups"]
    for app, entry in document["apps"].items():
        if len(document["apps"]) > 1:
            console.print(f"{app} ({entry['kind']})", style="bold", markup=False)
        console.print(_table(groups, entry["metrics"]))
    if any(group["excluded"] for group in groups):
        left_out = [run for group in groups for run in group["excluded"]]
        console.print(
            f"Not valid, or changed by hand, and left out: {', '.join(left_out)}",
            markup=False,
            soft_wrap=True,
        )
    for sentence in document["sentences"]:
        console.print(sentence, markup=False, soft_wrap=True)


def _table(groups: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> Table:
    """Returns a row for each group, with the figures that have a word for their ratio; --json has all."""
    shown = {name: each for name, each in metrics.items() if each["what"] != name} or metrics
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for heading in ("runs", "pairs"):
        table.add_column(heading, justify="right")
    for metric in shown.values():
        for heading in (f"{metric['what']}\n{metric['unit']}", "× the\nfirst", "95 %\ninterval"):
            table.add_column(heading, justify="right", no_wrap=True)
    for number, group in enumerate(groups):
        cells = [metric["groups"][number] for metric in shown.values()]
        figures = [text for cell in cells for text in (_number(cell["mean"]), *_ratio(cell))]
        pairs = max((cell.get("pairs", 0) for cell in cells), default=0)
        paired = str(pairs) if number else ""
        table.add_row(escape(group["label"]), str(len(group["runs"])), paired, *figures)
    return table


def _ratio(cell: Mapping[str, Any]) -> tuple[str, str]:
    if "pairs" not in cell:
        return "", ""
    interval = cell["ratio_of_means_95"]
    span = _NOTHING if interval is None else " – ".join(map(_times, interval))
    ratio = cell["ratio_of_means"]
    return _NOTHING if ratio is None else _times(ratio), span


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def _number(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
