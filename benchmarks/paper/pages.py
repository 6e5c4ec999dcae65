"""Writes the pages of ``docs/results``: one for each figure, and an index.

The part of a page between two marks is written by hand, and kept when the page is written anew.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.paper.drawings import drawing, unit_of
from benchmarks.paper.figures import CORE, FIGURES, IN_WORDS, Changes, PaperFigure
from benchmarks.paper.summaries import Row, Summary, agreement, paired_backends
from orchestrator.analytics.report_files import standalone
from orchestrator.apps.dataflow.paper import LATENCY
from orchestrator.results.comparison import METHODS, Comparison, Interval
from orchestrator.runs.files import write_atomic

BY_HAND = "<!-- by hand: kept when the page is written anew -->"
END = "<!-- end of the part by hand -->"
DIFFERENCES = "Where we differ, by how much, and the most likely cause"
_EMPTY = "Nothing is written here yet."
_DEFINITIONS = (
    "- Goodput: arrivals at the sink in the measured time, per second of it. Offered: what the source",
    "  emitted. Throughput: the paper's, from the first to the last arrival. All in tuples/s.",
    "- Latency: arrival minus capture at the source; the 95th percentile of each run, then the mean of runs.",
)
_BACKENDS = {"sim": "virtual time", "netns": "namespaces, real time"}


def write_page(
    folder: Path, figure: PaperFigure, found: Sequence[Summary], machine: str, also: Changes
) -> None:
    """Writes ``figure5.md`` and its drawings, if there is a valid run. ``machine``: this one. ``also``: what
    was changed in all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shown = [each for each in found if each.valid]
    if not shown:
        return
    for each in shown:
        drawn = drawing(figure, each)
        write_atomic(folder / f"{drawn.name}.svg", standalone(drawn).encode())
    path = folder / f"figure{figure.number}.md"
    by_hand = kept_by_hand(path.read_text()) if path.exists() else _EMPTY
    write_atomic(path, _page(figure, shown, machine, also, by_hand).encode())


def write_index(folder: Path) -> None:
    """Lists the pages that there are."""
    there = [each for each in FIGURES.values() if (folder / f"figure{each.number}.md").exists()]
    lines = [
        "# Results",
        "",
        "The paper's figures by our runs, beside what the paper states. One command runs what is missing of "
        "a figure and writes its page:",
        "```console",
        "$ python -m benchmarks.paper_figures --figure 5 --write docs/results",
        "```",
        "`cells.jsonl` has every run with its parameters, figures, verdict and commit: a run that is in it "
        "is not done again. The files under [experiments/paper](../../experiments/paper) say which "
        "parameters the paper states and which we had to choose. The part of a page about differences is "
        "written by hand.",
        "",
        "| figure | shows |",
        "| --- | --- |",
        *(f"| [Figure {each.number}](figure{each.number}.md) | {each.title} |" for each in there),
    ]
    write_atomic(folder / "README.md", ("\n".join(lines) + "\n").encode())


def kept_by_hand(page: str) -> str:
    """Returns what stands between the marks of a page.

    >>> kept_by_hand(f"…{BY_HAND}\\nOurs is less.\\n{END}…")
    'Ours is less.'
    """
    found = re.search(f"{re.escape(BY_HAND)}(.*?){re.escape(END)}", page, re.DOTALL)
    return found[1].strip() if found else _EMPTY


def _page(figure: PaperFigure, found: Sequence[Summary], machine: str, also: Changes, by_hand: str) -> str:
    lines = [
        f"# Figure {figure.number}: {figure.title.lower()}",
        "",
        f"The paper: {figure.says}",
        "",
        *_overview(figure, found),
        f"## {DIFFERENCES}",
        BY_HAND,
        by_hand,
        END,
        "",
    ]
    for each in found:
        lines += _section(figure, each)
    file = f"fig{figure.number}.yaml"
    lines += [
        "## How this was measured",
        f"- Experiment: [{file}](../../experiments/paper/{file}), with the parameters that the paper states "
        "and those that we chose.",
        *(f"- Command: {command}" for command in _commands(figure, found, also)),
        f"- Valid runs: {_runs(found)}",
        f"- Commit: {_commits(found)}",
        f"- Machine: {_machines(found, machine)}",
        f"- {METHODS}",
        *_DEFINITIONS,
    ]
    return "\n".join(lines) + "\n"


def _overview(figure: PaperFigure, found: Sequence[Summary]) -> list[str]:
    """Returns tables of the ratios to k=1 in all variants, beside the paper's."""
    what = "p95 latency" if figure.metric == LATENCY else "goodput"
    agree, both = agreement(found)
    said = "; **bold**: the paper's ratio is within the interval" if figure.stated else ""
    unsaid = " The paper does not say which of both it took." if figure.stated else ""
    return [
        f"## Ratio of {what} to k=1",
        f"Ratio of means, [95 % interval], number of pairs{said}.",
        "",
        *_ratios(figure, found, of_means),
        "",
        f"Mean of the pairs' ratios: each pair counts the same.{unsaid}",
        "",
        *_ratios(figure, found, of_pairs),
        "",
        *(
            [f"The intervals of virtual time and namespaces overlap in {agree} of {both} ratios.", ""]
            if both
            else []
        ),
        *_paired_backends(figure, found),
    ]


def _paired_backends(figure: PaperFigure, found: Sequence[Summary]) -> list[str]:
    """Says how near namespaces and virtual time are to each other where only the backend differs."""
    named = {each.variant: _titled(each) for each in found}
    said = []
    for variant, each in paired_backends(figure, found).items():
        ratio = _number(each.ratio_of_means) + _interval(each.ratio_of_means_95)
        said.append(f"{named[variant]} {ratio}, {each.pairs} pairs")
    if not said:
        return []
    return [f"Namespaces over virtual time, runs with the same parameters and seed: {'; '.join(said)}.", ""]


def _titled(found: Summary) -> str:
    return "as in the file" if found.variant == CORE else found.variant


class Ratio(NamedTuple):
    value: float | None
    interval: Interval | None


def of_means(gain: Comparison) -> Ratio:
    return Ratio(gain.ratio_of_means, gain.ratio_of_means_95)


def of_pairs(gain: Comparison) -> Ratio:
    return Ratio(gain.mean_of_ratios, gain.mean_of_ratios_95)


def _ratios(figure: PaperFigure, found: Sequence[Summary], kind: Callable[[Comparison], Ratio]) -> list[str]:
    columns = [f"{_titled(each)}, {_BACKENDS[each.backend]}" for each in found]
    names = list(dict.fromkeys(row.name for each in found for row in each.rows if row.k > 1))
    by_name = [{row.name: row for row in each.rows} for each in found]
    rows = []
    for name in names:
        of = [rows_of.get(name) for rows_of in by_name]
        stated = next((row.stated for row in of if row is not None and row.stated is not None), None)
        paper = ["–" if stated is None else f"{stated:g}"] if figure.stated else []
        rows.append([name, *paper, *(_ratio(row, kind) for row in of)])
    return _table(["", *(["paper"] if figure.stated else []), *columns], rows)


def _ratio(row: Row | None, kind: Callable[[Comparison], Ratio]) -> str:
    if row is None or row.gain is None:
        return "–"
    value, interval = kind(row.gain)
    if value is None:
        return "–"
    text = f"{value:.2f}{_interval(interval)}"
    return f"{f'**{text}**' if row.agrees_with(interval) else text}, {row.gain.pairs}"


def _section(figure: PaperFigure, found: Summary) -> list[str]:
    title = IN_WORDS[found.variant]
    rows = [
        [
            row.name,
            str(row.runs),
            _number(row.mean) + _interval(row.interval),
            *(_number(value) for value in (row.percentiles[2:3] or (None,))),
            *(_number(value) for value in (row.goodput, row.offered, row.throughput)),
        ]
        for row in found.rows
    ]
    heads = ["", "runs", f"{unit_of(figure)}: mean", "median", "goodput", "offered", "throughput"]
    if figure.metric != LATENCY:  # the first column has it
        rows = [[*row[:4], *row[5:]] for row in rows]
        heads.remove("goodput")
    return [
        f"## {title[0].upper()}{title[1:]} ({_BACKENDS[found.backend]})",
        f"![{figure.title}](figure{figure.number}-{found.variant}-{found.backend}.svg)",
        "",
        *_table(heads, rows),
        "",
        *_across(figure, found),
    ]


def _across(figure: PaperFigure, found: Summary) -> list[str]:
    if not found.across:
        return []
    labels = list(figure.by_words.values())
    rows = [
        [f"k={k}", f"{_number(gain.ratio_of_means)}{_interval(gain.ratio_of_means_95)}", str(gain.pairs)]
        for k, gain in found.across.items()
    ]
    return [*_table(["", f"{labels[-1]} over {labels[0]}", "pairs"], rows), ""]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cells).strip() + " |" for cells in lines]


def _commands(figure: PaperFigure, found: Sequence[Summary], also: Changes) -> list[str]:
    """Returns the commands that do all the runs again, one for each backend."""
    lines = []
    for backend in dict.fromkeys(each.backend for each in found):
        of = [each for each in found if each.backend == backend]
        variants = list(dict.fromkeys(each.variant for each in of))
        options = {
            "figure": figure.number,
            "variant": " ".join(variants) if variants != [CORE] else None,
            "backend": backend if backend != "sim" else None,
            "seeds": max(cell.seed for each in of for cell in each.cells),
            **also,
        }
        said = " ".join(f"--{name} {value}" for name, value in options.items() if value is not None)
        lines.append(f"`python -m benchmarks.paper_figures {said}`")
    return lines


def _runs(found: Sequence[Summary]) -> str:
    """Tells runs that are not valid from those that nobody has run yet."""
    valid, done = sum(each.valid for each in found), sum(len(each.cells) for each in found)
    planned = sum(each.planned for each in found)
    said = [f"{valid} of {done}."]
    if valid < done:
        said.append("The others are left out, with their pairs.")
    if done < planned:
        said.append(f"Not run yet: {planned - done}, if every seed here is to be in every row.")
    return " ".join(said)


def _machines(found: Sequence[Summary], here: str) -> str:
    """Returns what the valid runs say of their machines. ``here``: the machine that writes the page."""
    counts = Counter(cell.machine for each in found for cell in each.cells if cell.is_valid)
    return ", ".join(
        f"{machine} ({times} runs)" if machine else f"not recorded ({times} runs; written on {here})"
        for machine, times in sorted(counts.items(), key=lambda entry: -entry[1])
    )


def _commits(found: Sequence[Summary]) -> str:
    counts = Counter((cell.commit, cell.dirty) for each in found for cell in each.cells if cell.is_valid)
    return ", ".join(
        f"`{commit[:12] if commit else 'unknown'}`{' with changes' if dirty else ''} ({times} runs)"
        for (commit, dirty), times in sorted(counts.items(), key=lambda entry: -entry[1])
    )
