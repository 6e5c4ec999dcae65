"""Draws a figure of the paper by our runs, as an SVG file that stands alone."""

from collections.abc import Sequence
from typing import Any

from benchmarks.paper.figures import PaperFigure
from benchmarks.paper.summaries import Row, Summary
from orchestrator.apps.dataflow.paper import LATENCY
from orchestrator.results.colours import INK, PAPER, SERIES
from orchestrator.results.svg import WIDTH, Figure, canvas, finish

HEIGHT = 3.1
BAR = 0.25


def drawing(figure: PaperFigure, found: Summary) -> Figure:
    return _bars(figure, found) if figure.stated else _percentiles(figure, found)


def unit_of(figure: PaperFigure) -> str:
    return "latency p95, s" if figure.metric == LATENCY else "goodput, tuples/s"


def _bars(figure: PaperFigure, found: Summary) -> Figure:
    """Draws the means, and beside them the ratios to k=1 with the paper's."""
    labels = found.labels
    with canvas(1, 2, figsize=(WIDTH + 1.6, HEIGHT)) as (picture, ((means, ratios),)):
        replicas = sorted({row.k for row in found.rows})
        for index, k in enumerate(replicas):
            rows = [row for row in found.rows if row.k == k]
            at = [labels.index(row.label) + (index - 1) * BAR for row in rows]
            _bar(
                means, at, [row.mean for row in rows], [row.interval for row in rows], SERIES[index], f"k={k}"
            )
            if k > 1:
                gains = [row.gain.ratio_of_means_95 if row.gain else None for row in rows]
                at = [place - BAR / 2 for place in at]
                _bar(ratios, at, [row.ratio for row in rows], gains, SERIES[index], f"k={k}")
                stated = [(place, row.stated) for place, row in zip(at, rows, strict=True) if row.stated]
                ratios.plot(
                    *zip(*stated, strict=True),
                    linestyle="none",
                    marker="D",
                    markersize=6,
                    markerfacecolor=PAPER,
                    markeredgecolor=INK,
                    label="the paper" if index == len(replicas) - 1 else None,
                    zorder=5,
                )
        ratios.axhline(1.0, color=INK, linewidth=0.8)
        means.set_title(f"{unit_of(figure)}, mean and 95 % interval", loc="left")
        ratios.set_title("ratio to k=1, and 95 % interval", loc="left")
        for axis in (means, ratios):
            axis.set_xticks(range(len(labels)), labels)
            axis.set_ylim(bottom=0)
            axis.grid(visible=False, axis="x")
            axis.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))
        return _finished(picture, figure, found)


def _bar(
    axis: Any, at: Sequence[float], values: Sequence[float | None], intervals: Any, colour: str, label: str
) -> None:
    axis.bar(at, [value or 0.0 for value in values], BAR * 0.92, color=colour, label=label)
    for place, interval in zip(at, intervals, strict=True):
        if interval is not None:
            axis.plot([place, place], interval, color=INK, linewidth=1.3)
            for end in interval:
                axis.plot([place - 0.04, place + 0.04], [end, end], color=INK, linewidth=1.3)


def _percentiles(figure: PaperFigure, found: Summary) -> Figure:
    """Draws for each k the 5th, 25th, 50th, 75th and 95th percentile of the runs, and their mean."""
    labels = found.labels
    with canvas(1, len(labels), figsize=(WIDTH + 1.6, HEIGHT), sharey=True) as (picture, (axes,)):
        for index, (axis, label) in enumerate(zip(axes, labels, strict=True)):
            rows = [row for row in found.of(label) if row.percentiles]
            style = {"color": INK, "linewidth": 1.2}
            axis.bxp(
                [_box(row) for row in rows],
                positions=[row.k for row in rows],
                widths=0.6,
                showfliers=False,
                showmeans=True,
                patch_artist=True,
                boxprops={"facecolor": SERIES[index], "edgecolor": INK},
                medianprops={**style, "linewidth": 2.0},
                whiskerprops=style,
                capprops=style,
                meanprops={"marker": "D", "markersize": 5, "markerfacecolor": PAPER, "markeredgecolor": INK},
            )
            axis.set_title(f"{label}: {unit_of(figure)}" if index == 0 else label, loc="left")
            axis.set_xlabel("replicas of each operator, k")
            axis.grid(visible=False, axis="x")
            axis.set_ylim(bottom=0)
        return _finished(picture, figure, found)


def _box(row: Row) -> dict[str, float | None]:
    names = ("whislo", "q1", "med", "q3", "whishi")
    return {**dict(zip(names, row.percentiles, strict=True)), "mean": row.mean}


def _finished(picture: Any, figure: PaperFigure, found: Summary) -> Figure:
    values = "; ".join(f"{row.name}: {row.mean:.3g}" for row in found.rows if row.mean is not None)
    name = f"figure{figure.number}-{found.variant}-{found.backend}"
    return finish(picture, name, figure.title, f"{figure.title}, {unit_of(figure)}: {values}")
