"""The figure of detections in the report: how late they came, and what waited at nodes, over time."""

from collections.abc import Sequence

from orchestrator.results.svg import WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell


def detections_over_time(cells: Sequence[Cell]) -> Figure | None:
    """Of the first run that has any: runs with other seeds have other events."""
    shown = next(
        (
            (cell, result)
            for cell in cells
            for _, result in cell.runs
            if result["series"].get("event_waiting")
        ),
        None,
    )
    if shown is None:
        return None
    cell, result = shown
    delays: dict[str, list[list[float]]] = result["series"].get("detection_delays") or {}
    waiting: dict[str, list[list[float]]] = result["series"]["event_waiting"]
    with canvas(2, figsize=(WIDTH, 4.2), sharex=True) as (drawing, axes):
        for name, points in delays.items():
            axes[0, 0].plot([at for at, _ in points], [late for _, late in points], ".", label=name)
        axes[0, 0].set_title("delay of detections (s)", loc="left")
        axes[0, 0].set_ylim(bottom=0)
        if delays:
            axes[0, 0].legend(loc="upper right", fontsize=8)
        for node, points in waiting.items():
            axes[1, 0].step(
                [at for at, _ in points], [size / 1e3 for _, size in points], where="post", label=node
            )
        axes[1, 0].set_title("waiting for contacts (kB)", loc="left")
        axes[1, 0].set_ylim(bottom=0)
        if len(waiting) <= 10:
            axes[1, 0].legend(loc="upper right", fontsize=8)
        axes[1, 0].set_xlabel("time since start (s)")
        title = "Detections over time" + (f" ({cell.label})" if cell.label else "")
        worst = max((late for points in delays.values() for _, late in points), default=0.0)
        number = sum(map(len, delays.values()))
        return finish(
            drawing, "detections-time", title, f"{number} detections, the latest after {worst:.0f} s."
        )
