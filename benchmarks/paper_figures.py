"""Runs the paper's Figures 5 to 9 as experiments and shows the gains of replication beside the paper's.

``fig5_gain`` … have, for every variant and backend, our ratio to k=1 (of means, with a 95 % interval over
paired seeds) beside the paper's; ``fig6_latency`` the same of the 95th percentile of latency. ``valid_runs``:
how many runs that rests on.

A finished run is kept in a file of JSON lines and not done again: a command that was stopped goes on where it
was. ``--write docs/results`` also writes the pages of the figures. In virtual time a run takes a core for
some 10 to 20 s; Figure 5 with 30 seeds is 270 runs. Without ``--figure`` it takes a look at all of them, with
3 seeds.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper.campaign import ROOT, Bar, Task, missing, run_all, tasks_of
from benchmarks.paper.cells import Kept
from benchmarks.paper.commits import since
from benchmarks.paper.figures import CORE, FIGURES, Changes, PaperFigure, planned
from benchmarks.paper.machines import machine_in_words
from benchmarks.paper.pages import write_index, write_page
from benchmarks.paper.summaries import Summary, in_json, summary
from orchestrator.apps.dataflow.paper import REPLICAS
from orchestrator.errors import BadInput

BACKENDS = ("sim", "netns")
SEEDS = {"sim": 30, "netns": 5}
FEW = 3
"""Seeds of a look at all figures: the fewest that give an interval."""
ALL = "all"
CELLS = "cells.jsonl"


def wanted(
    figure: PaperFigure, variant: str, backend: str, seeds: Sequence[int], also: Changes
) -> list[Task]:
    found = []
    for cell in planned(figure, variant, backend, also):
        label = f"{figure.label(cell.factors)}, k={cell.factors[REPLICAS]}"
        name = f"fig{figure.number} {variant} {backend} {label}"
        found += tasks_of(cell, name, seeds)
    return found


def summaries(figure: PaperFigure, kept: Kept, also: Changes) -> list[Summary]:
    """Returns what is there of the figure: every variant and backend with a valid run."""
    found = (
        summary(figure, variant, backend, planned(figure, variant, backend, also), kept)
        for variant in figure.variants
        for backend in BACKENDS
    )
    return [each for each in found if each.valid]


def main() -> None:
    options = _parser().parse_args()
    figures = [FIGURES[number] for number in options.figure or FIGURES]
    also = {name: value for name in ("warmup", "duration") if (value := getattr(options, name)) is not None}
    seeds = range(1, (options.seeds or (SEEDS[options.backend] if options.figure else FEW)) + 1)
    path = options.cells or (options.write or Path("runs", "paper")) / CELLS
    kept = Kept(path)
    jobs = options.jobs or (2 if options.backend == "sim" else 1)
    tasks = [
        task
        for figure in figures
        for variant in _variants(figure, options.variant)
        for task in wanted(figure, variant, options.backend, seeds, also)
    ]
    counts = since(options.since, ROOT) if options.since else lambda commit: True
    with Bar(jobs) as bar:
        run_all(missing(tasks, kept, counts), jobs, kept, bar)
    kept = Kept(path)  # with what another process has added meanwhile
    found: dict[str, Any] = {"benchmark": "paper_figures"}
    shown = [(figure, summaries(figure, kept, also)) for figure in figures]
    for figure, of_figure in shown:
        found |= in_json(figure, of_figure)
        if options.write:
            write_page(options.write, figure, of_figure, machine_in_words(), also)
    if options.write:
        write_index(options.write)
    used = {
        cell.place for _, of_figure in shown for each in of_figure for cell in each.cells if cell.is_valid
    }
    found |= {"valid_runs": len(used)}
    print(json.dumps(found) if options.json else _table(shown, len(used)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", type=int, nargs="+", choices=sorted(FIGURES), help="(default: all)")
    parser.add_argument(
        "--variant", nargs="+", default=[CORE], help="core, authors, olsrd, …, or all (default: core)"
    )
    parser.add_argument("--backend", choices=BACKENDS, default="sim")
    parser.add_argument(
        "--seeds", type=_at_least_one, help="runs of each cell (default: 30 in sim, 5 in netns)"
    )
    parser.add_argument(
        "--jobs", type=_at_least_one, help="runs at the same time (default: 2 in sim, 1 in netns)"
    )
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the pages of the figures, too")
    parser.add_argument(
        "--cells",
        type=Path,
        metavar="FILE",
        help="finished runs (default: cells.jsonl beside the pages, or in runs/paper)",
    )
    parser.add_argument(
        "--since",
        metavar="COMMIT",
        help="run cells again that were not run by this commit or a descendant of it; until they are, pages "
        "show the old ones",
    )
    parser.add_argument("--warmup", type=float, help="seconds, in place of the file's")
    parser.add_argument("--duration", type=float, help="seconds that count, in place of the file's")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _variants(figure: PaperFigure, names: Sequence[str]) -> list[str]:
    """Returns those of the named variants that the figure has."""
    known = {name for each in FIGURES.values() for name in each.variants}
    if unknown := sorted({*names} - known - {ALL}):
        raise BadInput(f"there is no variant {unknown[0]}: choose among {', '.join(sorted(known))}, all")
    return [name for name in figure.variants if ALL in names or name in names]


def _table(shown: Sequence[tuple[PaperFigure, Sequence[Summary]]], valid: int) -> str:
    lines = []
    for figure, found in shown:
        lines.append(f"Figure {figure.number}: {figure.title}")
        for each in found:
            lines.append(f"  {each.variant}, {each.backend}: {each.valid} valid runs of {each.planned}")
            for row in each.rows:
                mean = "–" if row.mean is None else f"{row.mean:.2f}"
                ratio = "" if row.ratio is None else f"  ratio to k=1 {row.ratio:.2f}"
                if row.gain is not None and (within := row.gain.ratio_of_means_95):
                    ratio += f" [{within.low:.2f}, {within.high:.2f}]"
                paper = "" if row.stated is None else f"  paper {row.stated:g}"
                lines.append(f"    {row.name:<20}{mean:>8}{ratio}{paper}")
    return "\n".join([*lines, f"valid_runs: {valid}"])


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
