"""How the figures of a report look at runs: by cell, in panels, with names that fit a legend."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from orchestrator.analytics.cells import REPLICAS, spread
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.svg import SERIES

MOST_PANELS = 6
LINES = ("-", "--", ":", "-.")

Result = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """Runs that differ only in their seed. ``label`` is empty if there is only one cell."""

    label: str
    factors: dict[str, Any]
    runs: tuple[tuple[RunInput, Result], ...]

    def metric(self, name: str) -> dict[str, Any]:
        return spread([result["metrics"][name] for _, result in self.runs])

    def latency_quantiles(self) -> list[float]:
        """Of the tuples of all runs together; empty if nothing was delivered."""
        told = [result for _, result in self.runs if result["latency_quantiles_s"]]
        if len(told) < 2:
            return list(told[0]["latency_quantiles_s"]) if told else []
        return pooled([(r["latency_quantiles_s"], r["metrics"]["delivered"]) for r in told])


def pooled(curves: Sequence[tuple[Sequence[float], int]]) -> list[float]:
    """The quantiles of all values together, given each group's quantiles and its number of values."""
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
    """``{"replicas": 2, "topology.mobility.speed": "5 m/s"}`` → ``k = 2, speed = 5 m/s``."""
    short = {name: "k" if name == REPLICAS else name.rpartition(".")[2] for name in factors}
    return ", ".join(f"{short[name]} = {value}" for name, value in factors.items())


def panels_of(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    """One panel for each combination of factors other than the main one; too many are cut."""
    factor = main_factor(cells)
    if factor is None:
        return [("", list(cells))]
    groups = grouped(cells, lambda cell: label_of(without(cell.factors, factor)))
    return list(groups.items())[:MOST_PANELS]


def main_factor(cells: Sequence[Cell]) -> str | None:
    names = list(dict.fromkeys(name for cell in cells for name in cell.factors))
    varied = [n for n in names if len({str(cell.factors.get(n)) for cell in cells}) > 1]
    if REPLICAS in varied:
        return REPLICAS
    return varied[0] if varied else None


def hue(cell: Cell, members: Sequence[Cell]) -> str:
    factor = main_factor(members)
    return label_of({factor: cell.factors[factor]}) if factor else cell.label


def legend(axis: Any, members: Sequence[Cell]) -> None:
    if len(members) > 1 and axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)


def stroke(position: int) -> dict[str, Any]:
    return {"color": SERIES[position % len(SERIES)], "linestyle": LINES[position // len(SERIES) % len(LINES)]}


def most_telling(cells: Sequence[Cell]) -> tuple[Cell, tuple[RunInput, Result]]:
    """A run with as many replicas as any, preferably one that delivered something."""

    def telling(cell: Cell) -> tuple[bool, float]:
        k = cell.factors.get(REPLICAS)
        return bool(cell.latency_quantiles()), k if isinstance(k, int) else 0

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
