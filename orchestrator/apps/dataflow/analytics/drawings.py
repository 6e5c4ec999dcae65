"""Draws figures of tuples, over time and by cell of a sweep; a figure without data is left out."""

import math
import re
from collections.abc import Sequence
from typing import Any

from orchestrator.apps.dataflow.analytics.tuple_table import DELIVERED, IN_FLIGHT
from orchestrator.results import registry
from orchestrator.results.colours import GRID, INK, SERIES
from orchestrator.results.faults import HINT, mark, shared_by
from orchestrator.results.svg import MOST_ROWS, WIDTH, Figure, canvas, finish, logarithmic_x
from orchestrator.results.views import (
    Cell,
    grouped,
    hue,
    label_of,
    legend,
    main_factor,
    panels_of,
    pooled,
    short,
    stroke,
    without,
)

SIDEWAYS: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 8}
SLANTED: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
MOST_LETTERS = 36
"""Below half a figure, side by side."""
BESIDE = 0.08
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?(\s?[A-Za-z%µ/]+)?$")
"""With or without a unit."""


def goodput_over_time(cells: Sequence[Cell]) -> Figure | None:
    spoken = []
    hint = ""
    panels = panels_of(cells)
    with canvas(len(panels), figsize=(WIDTH, 0.7 + 2.3 * len(panels)), sharex=True) as (drawing, axes):
        for axis, (title, members) in zip(axes[:, 0], panels, strict=True):
            for position, cell in enumerate(members):
                times, rates, begin = _rates(cell)
                if not times:
                    continue
                axis.step(times, rates, where="post", label=hue(cell, members), **stroke(position))
                spoken.append(f"{cell.label or 'all'}: up to {max(rates):.1f} tuples/s")
                if position == 0 and begin > 0:
                    axis.axvspan(0, begin, color=GRID, linewidth=0)
                    axis.text(begin / 2, 0.5, "warm-up", transform=axis.get_xaxis_transform(), **SIDEWAYS)
            results = [result for cell in members for _, result in cell.runs]
            if faults := shared_by(cells, results):
                mark(axis, faults, max(result["series"]["ended_s"] or 0.0 for result in results))
                hint = HINT
            axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
            axis.set_ylabel("arrivals (tuples/s)")
            axis.set_title(title, loc="left")
            legend(axis, members)
        axes[-1, 0].set_xlabel(f"time since start (s){hint}")
        if not spoken:
            return None
        alternative = f"Arrivals at the sink over time. {'; '.join(spoken)}."
        return finish(drawing, "goodput-time", "Goodput over time", alternative)


def _rates(cell: Cell) -> tuple[list[float], list[float], float]:
    """Returns arrivals per second in whole bins, the mean over the cell's runs;
    and the end of the warm-up.
    """
    series = [result["series"] for _, result in cell.runs if result["series"]["deliveries"]]
    if not series:
        return [], [], 0.0
    end = max(s["ended_s"] for s in series)
    width = max(1, math.ceil(end / 60))
    # An incomplete last bin would look like an outage.
    bins = [0] * max(1, int(end // width))
    for s in series:
        for second, tuples, _ in s["deliveries"]:
            if (index := int(second) // width) < len(bins):
                bins[index] += tuples
    times = [float(index * width) for index in range(len(bins) + 1)]
    rates = [count / width / len(cell.runs) for count in (*bins, bins[-1])]
    return times, rates, series[0]["window_s"][0] or 0.0


def _latency_quantiles(cell: Cell) -> list[float]:
    """Returns the quantiles over the tuples of all runs; empty if nothing was delivered."""
    known = [result for _, result in cell.runs if result["series"]["latency_quantiles_s"]]
    if len(known) < 2:
        return list(known[0]["series"]["latency_quantiles_s"]) if known else []
    return pooled([(r["series"]["latency_quantiles_s"], r["metrics"]["delivered"]) for r in known])


def latency_distribution(cells: Sequence[Cell]) -> Figure | None:
    curves = [(cell, curve) for cell in cells if (curve := _latency_quantiles(cell))]
    if not curves:
        return None
    panels = panels_of([cell for cell, _ in curves])
    by_cell = {cell.label: curve for cell, curve in curves}
    smallest = min(curve[0] for _, curve in curves)
    largest = max(curve[-1] for _, curve in curves)
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    with canvas(rows, columns, figsize=(WIDTH, 0.6 + 2.7 * rows), sharex=True, sharey=True) as (
        drawing,
        axes,
    ):
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (title, members) in zip(axes.flat, panels, strict=False):
            for position, cell in enumerate(members):
                curve = by_cell[cell.label]
                shares = [100 * step / (len(curve) - 1) for step in range(len(curve))]
                axis.plot(curve, shares, label=hue(cell, members), **stroke(position))
            if largest > 30 * smallest > 0:
                logarithmic_x(axis, largest / smallest)
            axis.axhline(95, color=INK, linewidth=0.8, linestyle=":")
            axis.set_ylim(0, 100)
            axis.set_title(title, loc="left")
            axis.set_xlabel("latency (s)")
            legend(axis, members)
        for row in axes:
            row[0].set_ylabel("tuples within (%)")
        spoken = "; ".join(
            f"{cell.label or 'all'}: median {curve[len(curve) // 2]:.3g} s" for cell, curve in curves
        )
        alternative = f"Share of delivered tuples within a latency. {spoken}."
        return finish(drawing, "latency", "Latency distribution (dotted: 95 %)", alternative)


def by_factor(cells: Sequence[Cell]) -> Figure | None:
    """Draws goodput and p95 latency over the factor that the cells vary; a colour for each other
    combination.
    """
    factor = main_factor(cells)
    if factor is None:
        return None
    values = list(grouped(cells, lambda cell: str(cell.factors[factor])))
    # Words have no order, so no line connects them.
    ordered = all(NUMBER.match(value) for value in values)
    shown = (("goodput_fps", "goodput (tuples/s)"), ("latency_p95_s", "latency, p95 (s)"))
    spoken = []
    with canvas(1, 2, figsize=(WIDTH, 3.1)) as (drawing, axes):
        for axis, (metric, title) in zip(axes[0], shown, strict=True):
            groups = grouped(cells, lambda cell: label_of(without(cell.factors, factor)))
            for position, (rest, members) in enumerate(groups.items()):
                found = [(values.index(str(c.factors[factor])), c.metric(metric)) for c in members]
                points = [(at, figure) for at, figure in found if figure["mean"] is not None]
                if not points:
                    continue
                aside = 0.0 if ordered else BESIDE * (position - (len(groups) - 1) / 2)
                axis.errorbar(
                    [at + aside for at, _ in points],
                    [figure["mean"] for _, figure in points],
                    yerr=[figure["sd"] or 0.0 for _, figure in points],
                    marker="o",
                    capsize=4,
                    label=rest,
                    **stroke(position) | ({} if ordered else {"linestyle": "none"}),
                )
                means = ", ".join(f"{values[at]}: {figure['mean']:.3g}" for at, figure in points)
                spoken.append(f"{title}{f', {rest}' if rest else ''}: {means}")
            long = sum(map(len, values)) > MOST_LETTERS
            axis.set_xticks(range(len(values)), values, **(SLANTED if long else {}))
            axis.set_xlim(-0.3, len(values) - 0.7)
            axis.set_ylim(0, 1.08 * axis.get_ylim()[1])
            axis.set_title(title, loc="left")
            known = registry.factor_of(factor)
            axis.set_xlabel(known.text if known else short(factor))
        if len(groups) > 1:
            axes[0][0].legend(fontsize=8)
        if not spoken:
            return None
        counts = {len(cell.runs) for cell in cells}
        seeds = f"{'up to ' if len(counts) > 1 else ''}{max(counts)} seeds"
        title = f"Effect of {known.short if known else factor}"
        title += f" (mean ± standard deviation, {seeds})" if max(counts) > 1 else ""
        return finish(drawing, "factor", title, f"{'; '.join(spoken)}.")


def fates(cells: Sequence[Cell]) -> Figure | None:
    counts = [(cell, _fate_shares(cell)) for cell in cells[:MOST_ROWS]]
    names = sorted(
        {name for _, shares in counts for name in shares}, key=lambda name: (name != DELIVERED, name)
    )
    if not names:
        return None
    colours = {DELIVERED: SERIES[2], IN_FLIGHT: SERIES[5]}
    spare = [colour for colour in SERIES if colour not in colours.values()]
    others = [name for name in names if name not in colours]
    colours |= {name: spare[index % len(spare)] for index, name in enumerate(others)}
    with canvas(figsize=(WIDTH, 1.4 + 0.32 * len(counts) + 0.18 * len(names))) as (drawing, axes):
        axis = axes[0, 0]
        left = [0.0] * len(counts)
        for name in names:
            widths = [shares.get(name, 0.0) for _, shares in counts]
            axis.barh(
                range(len(counts)), widths, left=left, height=0.7, color=colours[name], label=_plain(name)
            )
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axis.set_yticks(range(len(counts)), [cell.label or "run" for cell, _ in counts])
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set_xlim(0, 100)
        axis.set_xlabel("tuples born in the measured window (%)")
        drawing.legend(loc="outside lower left", ncols=2, fontsize=8)
        spoken = "; ".join(
            f"{cell.label or 'all'}: " + ", ".join(f"{_plain(n)} {shares.get(n, 0):.1f} %" for n in names)
            for cell, shares in counts
        )
        return finish(drawing, "fates", "What became of the tuples", f"{spoken}.")


def _fate_shares(cell: Cell) -> dict[str, float]:
    totals: dict[str, int] = {}
    for _, result in cell.runs:
        for name, count in result["metrics"]["fates"].items():
            totals[name] = totals.get(name, 0) + count
    whole = sum(totals.values())
    return {name: 100 * count / whole for name, count in totals.items()}


def _plain(fate: str) -> str:
    return fate.replace("_", " ").replace("dropped:", "dropped: ")
