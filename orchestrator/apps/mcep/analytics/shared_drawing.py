"""The figure of shared selections in the report: who was processed for whom."""

from collections.abc import Sequence

from orchestrator.results.svg import WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell

MOST_DRAWN = 60
"""Queries in a picture."""


def who_shared(cells: Sequence[Cell]) -> Figure | None:
    """Whose selections were processed for whom, of the first run with any."""
    for cell in cells:
        for _, result in cell.runs:
            graph: dict[str, dict[str, int]] = result["series"].get("sharing") or {}
            if graph:
                return _drawn(cell, graph)
    return None


def _drawn(cell: Cell, graph: dict[str, dict[str, int]]) -> Figure:
    names = sorted({*graph, *(query for found in graph.values() for query in found)})[:MOST_DRAWN]
    counts = [[graph.get(by, {}).get(query, 0) for query in names] for by in names]
    size = 1.2 + 0.28 * len(names)
    with canvas(1, figsize=(WIDTH, max(2.4, min(size, 12.0)))) as (drawing, axes):
        image = axes[0, 0].imshow(counts, cmap="Blues", aspect="auto", vmin=0)
        axes[0, 0].set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
        axes[0, 0].set_yticks(range(len(names)), names, fontsize=8)
        axes[0, 0].set_xlabel("got results of")
        axes[0, 0].set_ylabel("was processed")
        axes[0, 0].set_title("selections", loc="left")
        drawing.colorbar(image, ax=axes[0, 0])
        total = sum(map(sum, counts))
        title = "Who shared with whom" + (f" ({cell.label})" if cell.label else "")
        return finish(
            drawing, "selections-shared", title, f"{total} selections got results of another query's."
        )
