"""Turns summaries into plain rows, one a run, one a cell or one a comparison, for CSV files and frames."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.results.cells import SEED, apps_of

Row = dict[str, Any]


def run_rows(summaries: Sequence[Mapping[str, Any]], usable: Sequence[bool]) -> list[Row]:
    """Returns a row for each run: its factors, seed and verdict, and every metric that is a single number.

    If the runs have several applications, the names of their metrics begin with the application's.
    """
    several = len({app for summary in summaries for app in apps_of(summary)}) > 1
    return [
        {
            "run": summary["run"],
            "experiment": summary["experiment"],
            **{path: value for path, value in summary["factors"].items() if path != SEED},
            "seed": summary["seed"],
            "verdict": summary["verdict"],
            "usable": counts,
            **_numbers(summary, several),
        }
        for summary, counts in zip(summaries, usable, strict=True)
    ]


def _numbers(summary: Mapping[str, Any], several: bool) -> Row:
    found = dict(summary["metrics"])
    if several:
        for app, entry in apps_of(summary).items():
            found |= {f"{app}.{name}": value for name, value in entry["metrics"].items()}
    return {name: value for name, value in found.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def cell_rows(cells: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Returns a row for each cell, application and metric: mean, standard deviation and number of runs."""
    return [
        {**cell["factors"], "app": app, "metric": name, **spread}
        for cell in cells
        for app, found in _parts(cell)
        for name, spread in found["metrics"].items()
    ]


def comparison_rows(cells: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Returns a row for each cell, application and metric that is compared with another cell."""
    return [
        {
            **cell["factors"],
            "compared_with": "; ".join(f"{k}={v}" for k, v in cell["versus"]["factors"].items()),
            "app": app,
            "metric": name,
            **{key: value for one, two in ratio.items() for key, value in _flat(one, two)},
        }
        for cell in cells
        if "versus" in cell and cell["versus"]["factors"] != cell["factors"]
        for app, found in cell["apps"].items()
        for name, ratio in found.get("ratios", {}).items()
    ]


def breakdown_rows(cells: Sequence[Mapping[str, Any]], metric: str) -> list[Row]:
    """Returns a row for each cell, application and part, such as an operator: the means of its figures."""
    return [
        {
            **cell["factors"],
            "app": app,
            "part": part,
            **{f"{name}{end}": spread[key] for name, spread in figures.items() for key, end in _SPREAD},
        }
        for cell in cells
        for app, found in cell["apps"].items()
        for part, figures in found.get(metric, {}).items()
    ]


_SPREAD = (("mean", ""), ("sd", "_sd"))


def _parts(cell: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the applications; with several of them, first the whole run under an empty name."""
    if len(cell["apps"]) != 1:
        yield "", cell
        yield from cell["apps"].items()
    else:
        yield next(iter(cell["apps"])), cell


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields an interval as two columns."""
    if name.endswith("_95"):
        low, high = value or (None, None)
        yield f"{name}_low", low
        yield f"{name}_high", high
    else:
        yield name, value
