"""Views on runs for sections and figures of a report: by cell, in panels, with short names for legends.

A ``Result`` has the ``metrics`` and ``series`` of a run, together with those of the application in view.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from orchestrator.results import registry
from orchestrator.results.cells import SEED, spread
from orchestrator.results.colours import SERIES
from orchestrator.results.inputs import RunInput
from orchestrator.runs.run_directory import RunDirectory

MOST_PANELS = 6
LINES = ("-", "--", ":", "-.")

Result = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """Runs that differ only in their seed. ``label`` is empty if there is only one cell.

    ``app``: the application in view; empty if it is the whole run, of several applications.
    """

    label: str
    factors: dict[str, Any]
    runs: tuple[tuple[RunInput, Result], ...]
    app: str = ""

    def metric(self, name: str) -> dict[str, Any]:
        return spread([result["metrics"][name] for _, result in self.runs])

    @property
    def is_active(self) -> bool:
        """Says whether an application did something in it."""
        signs = [metric.name for metric in registry.metrics().values() if metric.activity]
        return any(result["metrics"].get(name) for _, result in self.runs for name in signs)


@dataclass(frozen=True)
class View:
    """The input of a section: one application, or the whole run (``app`` is empty).

    ``cells`` are those to show, ``groups`` their means as in the summary, ``runs`` all runs. ``apps``: in a
    view of the whole run, the views of its applications.
    """

    place: RunDirectory
    summary: Mapping[str, Any]
    app: str
    kind: str
    cells: Sequence[Cell]
    groups: Sequence[Mapping[str, Any]]
    runs: Sequence[tuple[RunInput, Result]]
    apps: Mapping[str, "View"]

    @property
    def is_only(self) -> bool:
        """Says whether its application is the only one of its runs."""
        return bool(self.app) and all(len(run.apps) == 1 for run, _ in self.runs)


def cells_shown(runs: Sequence[tuple[RunInput, Result]], app: str) -> list[Cell]:
    """Returns the cells of the runs that enter the means; of all runs if none does, so that one can see what
    went wrong.
    """
    groups: dict[str, list[tuple[RunInput, Result]]] = {}
    for run, result in [pair for pair in runs if pair[0].is_usable] or runs:
        groups.setdefault(label_of(varied_factors(run)), []).append((run, result))
    return [Cell(label, varied_factors(group[0][0]), tuple(group), app) for label, group in groups.items()]


def varied_factors(run: RunInput) -> dict[str, Any]:
    return {name: value for name, value in run.factors.items() if name != SEED}


def pooled(curves: Sequence[tuple[Sequence[float], int]]) -> list[float]:
    """Returns the quantiles of all values together, from each group's quantiles and number of values."""
    steps = len(curves[0][0]) - 1
    # Between two neighbouring quantiles of a group lies an equal share of its values.
    parts = sorted(((low + high) / 2, count) for curve, count in curves for low, high in pairwise(curve))
    whole = sum(count for _, count in parts)
    quantiles = [min(curve[0] for curve, _ in curves)]
    so_far = 0
    for value, count in parts:
        so_far += count
        while len(quantiles) < steps and so_far * steps >= len(quantiles) * whole:
            quantiles.append(value)
    return [*quantiles, max(curve[-1] for curve, _ in curves)]


def label_of(factors: dict[str, Any]) -> str:
    """Formats ``{"replicas": 2, "topology.mobility.speed": "5 m/s"}`` as ``k = 2, speed = 5 m/s``."""
    return ", ".join(f"{short(name)} = {value}" for name, value in factors.items())


def short(factor: str) -> str:
    """Returns a short name: k for ``replicas``, as in the literature;
    for others the last part of the path.
    """
    found = registry.factor_of(factor)
    return found.short if found else factor.rpartition(".")[2]


def panels_of(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    """Returns one panel for each combination of factors other than the main one, up to a limit."""
    factor = main_factor(cells)
    if factor is None:
        return [("", list(cells))]
    groups = grouped(cells, lambda cell: label_of(without(cell.factors, factor)))
    return list(groups.items())[:MOST_PANELS]


def main_factor(cells: Sequence[Cell]) -> str | None:
    names = list(dict.fromkeys(name for cell in cells for name in cell.factors))
    varied = [n for n in names if len({str(cell.factors.get(n)) for cell in cells}) > 1]
    first = [name for name in varied if registry.factor_of(name)]
    return next(iter((*first, *varied)), None)


def hue(cell: Cell, members: Sequence[Cell]) -> str:
    factor = main_factor(members)
    return label_of({factor: cell.factors[factor]}) if factor else cell.label


def legend(axis: Any, members: Sequence[Cell]) -> None:
    if len(members) > 1 and axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)


def stroke(position: int) -> dict[str, Any]:
    return {"color": SERIES[position % len(SERIES)], "linestyle": LINES[position // len(SERIES) % len(LINES)]}


def most_telling(cells: Sequence[Cell]) -> tuple[Cell, tuple[RunInput, Result]]:
    """Chooses a run to show: with the most replicas (or another ``Factor``), preferably one that did
    something.
    """

    def telling(cell: Cell) -> tuple[bool, float]:
        sizes = [value for name, value in cell.factors.items() if registry.factor_of(name)]
        return cell.is_active, sizes[0] if sizes and isinstance(sizes[0], int) else 0

    cell = max(cells, key=telling)
    return cell, cell.runs[0]


def which(cell: Cell, run: RunInput) -> str:
    return f" ({cell.label}, seed {run.manifest.get('seed')})" if cell.label else ""


def without(factors: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in factors.items() if key != name}


def grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
