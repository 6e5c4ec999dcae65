"""The figure of situations in the report: how late they came, over time."""

from collections.abc import Sequence

from orchestrator.results.svg import WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell

MOST_POINTS = 600
"""Of a query: a point more cannot be seen, and each makes the report larger."""


def situations_over_time(cells: Sequence[Cell]) -> Figure | None:
    """Of the first run that has any: runs with other seeds have other events."""
    for cell in cells:
        for _, result in cell.runs:
            delays: dict[str, list[list[float]]] = result["series"].get("situation_delays") or {}
            if any(delays.values()):
                return _drawn(cell, delays)
    return None


def _drawn(cell: Cell, delays: dict[str, list[list[float]]]) -> Figure:
    with canvas(1, figsize=(WIDTH, 2.4)) as (drawing, axes):
        for name, points in delays.items():
            drawn = thinned(points)
            axes[0, 0].plot([at for at, _ in drawn], [late for _, late in drawn], ".", label=name)
        axes[0, 0].set_title("delay of situations (s)", loc="left")
        axes[0, 0].set_ylim(bottom=0)
        axes[0, 0].set_xlabel("time since start (s)")
        axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0.4, 1.0), ncols=4, fontsize=8)
        worst = max(late for points in delays.values() for _, late in points)
        number = sum(map(len, delays.values()))
        title = "Situations over time" + (f" ({cell.label})" if cell.label else "")
        return finish(
            drawing, "situations-time", title, f"{number} situations, the latest after {worst:.1f} s."
        )


def thinned(points: Sequence[list[float]]) -> list[list[float]]:
    """The least and the greatest of each stretch of time, where there are too many."""
    if len(points) <= MOST_POINTS:
        return list(points)
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    length = (last - first) / (MOST_POINTS // 2) or 1.0
    stretches: dict[int, list[list[float]]] = {}
    for point in points:
        stretches.setdefault(min(int((point[0] - first) / length), MOST_POINTS // 2 - 1), []).append(point)
    return [end(stretch, key=lambda point: point[1]) for stretch in stretches.values() for end in (min, max)]
