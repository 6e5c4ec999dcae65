"""The figure of flows in the report: what was sent and what arrived, over time."""

from collections.abc import Sequence

from orchestrator.results.colours import GRID
from orchestrator.results.svg import WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell

MOST_PANELS = 9
"""Flows drawn one by one, and all together."""


def flows_over_time(cells: Sequence[Cell]) -> Figure | None:
    """Of the first run of the first cell that has any: runs with other seeds have other outages."""
    shown = next(
        ((cell, result) for cell in cells for _, result in cell.runs if result["series"].get("flow_seconds")),
        None,
    )
    if shown is None:
        return None
    cell, result = shown
    series: dict[str, list[list[float]]] = result["series"]["flow_seconds"]
    names = [name for name in series if name][: MOST_PANELS - 1]
    panels = names if len(names) == 1 else [*names, ""]
    spoken = []
    with canvas(len(panels), figsize=(WIDTH, 0.7 + 1.2 * len(panels)), sharex=True) as (drawing, axes):
        for axis, name in zip(axes[:, 0], panels, strict=True):
            times = [at_s for at_s, _, _ in series[name]]
            sent = [bps / 1e3 for _, bps, _ in series[name]]
            arrived = [bps / 1e3 for _, _, bps in series[name]]
            axis.step(times, sent, where="post", color=GRID, label="sent")
            axis.step(times, arrived, where="post", label="arrived")
            axis.set_ylim(bottom=0)
            axis.set_title(name or "all flows", loc="left")
            mean = sum(arrived) / len(arrived)
            spoken.append(f"{name or 'all flows'}: {mean:.1f} of {sum(sent) / len(sent):.1f} kb/s arrived")
        axes[0, 0].legend(loc="lower right", fontsize=8)
        drawing.supylabel("kb/s", fontsize=9)
        axes[-1, 0].set_xlabel("time since start (s)")
        title = "Flows over time" + (f" ({cell.label})" if cell.label else "")
        return finish(drawing, "flows-time", title, f"What flows sent and what arrived. {'; '.join(spoken)}.")
