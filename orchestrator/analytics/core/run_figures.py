"""Draws figures of the network: where nodes were, what links delivered, whether there was a path."""

from collections.abc import Sequence

from orchestrator.results import registry
from orchestrator.results.cells import SEED
from orchestrator.results.colours import BAD, FAINT, GOOD, INK, SERIES
from orchestrator.results.faults import HINT, mark, shared_by
from orchestrator.results.svg import MOST_ROWS, WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell, Result, label_of, most_telling, which

FLATTEST, TALLEST = 0.3, 1.1
ROOM = 0.55
MAP_POINTS = 0.8 * WIDTH * 72
LETTER_POINTS, LINE_POINTS = 5, 11


def link_deliveries(cells: Sequence[Cell]) -> Figure | None:
    """Draws, for one run, what was delivered over each link, beside what its SNR predicts."""
    cell, (run, result) = most_telling(cells)
    links: list[tuple[int, int, float]] = result["series"]["links"]
    if not links:
        return None
    most = max(attempted for attempted, _, _ in links)
    with canvas(figsize=(WIDTH, 3.6)) as (drawing, axes):
        axis = axes[0, 0]
        axis.plot([0, 100], [0, 100], color=FAINT, linewidth=1.0, zorder=0)
        axis.scatter(
            [100 * expected for _, _, expected in links],
            [100 * delivered / attempted for attempted, delivered, _ in links],
            s=[8 + 80 * attempted / most for attempted, _, _ in links],
            color=SERIES[0],
            alpha=0.6,
            linewidths=0,
        )
        axis.set_xlim(-3, 103)
        axis.set_ylim(-3, 103)
        axis.set_xlabel("expected of full frames on a silent radio (%)")
        axis.set_ylabel("delivered (%)")
        sent = sum(attempted for attempted, _, _ in links)
        arrived = sum(delivered for _, delivered, _ in links)
        expected = sum(attempted * share for attempted, _, share in links)
        alternative = (
            f"{len(links)} links, the larger a dot the more was sent. In all {100 * arrived / sent:.0f} % of "
            f"{sent:,} transmissions arrived, where {100 * expected / sent:.0f} % were to be expected; "
            "what is missing below the diagonal was lost to collisions."
        )
        title = f"Delivered and expected, by link{which(cell, run)}"
        return finish(drawing, "links", title, alternative)


def trajectories(cells: Sequence[Cell]) -> Figure | None:
    cell, (run, result) = most_telling(cells)
    paths: dict[str, list[list[float]]] = result["series"]["positions"]
    if not paths:
        return None
    placed = run.places
    labels = {node: f"{', '.join(placed[node])} ({node})" for node in sorted(placed) if node in paths}
    (left, right), (low, high) = extent([point for path in paths.values() for point in path])
    shape = (high - low) / (right - left)
    heights = levels(
        [
            ((paths[node][0][0] - left) / (right - left), (paths[node][0][1] - low) / (right - left), text)
            for node, text in labels.items()
        ]
    )
    with canvas(figsize=(WIDTH, 0.6 + 0.9 * WIDTH * shape)) as (drawing, axes):
        axis = axes[0, 0]
        for node in sorted(paths, key=lambda name: (name in placed, name)):
            xs, ys = [x for x, _ in paths[node]], [y for _, y in paths[node]]
            colour = SERIES[0] if node in placed else FAINT
            axis.plot(xs, ys, color=colour, linewidth=1.0, alpha=0.8 if node in placed else 1.0)
            axis.plot(xs[:1], ys[:1], marker="o", color=SERIES[1] if node in placed else INK, markersize=4)
        for (node, text), height in zip(labels.items(), heights, strict=True):
            begin = paths[node][0]
            axis.annotate(text, begin, xytext=(5, height), textcoords="offset points", fontsize=8)
        axis.set_aspect("equal")
        axis.set_xlim(left, right)
        axis.set_ylim(low, high)
        axis.set_xlabel("x (m)")
        axis.set_ylabel("y (m)")
        where = "; ".join(f"{node}: {', '.join(replicas)}" for node, replicas in sorted(placed.items()))
        alternative = (
            f"Paths of {len(paths)} nodes; dots mark where they began. Replicas are on {where or 'none'}."
        )
        return finish(drawing, "map", f"Where the nodes went{which(cell, run)}", alternative)


def connectivity(cells: Sequence[Cell]) -> Figure | None:
    """Draws connectivity by ground truth. Runs that differ only in a factor such as k share their mobility:
    drawn once.
    """
    rows: dict[str, Result] = {}
    for cell in cells:
        for run, result in cell.runs:
            if result["series"]["connectivity"]:
                rest = {name: value for name, value in cell.factors.items() if not registry.factor_of(name)}
                rest[SEED] = run.manifest.get("seed")
                rows.setdefault(label_of(rest), result)
    shown = dict(list(rows.items())[:MOST_ROWS])
    if not shown:
        return None
    spoken = []
    with canvas(figsize=(WIDTH, 1.1 + 0.34 * len(shown))) as (drawing, axes):
        axis = axes[0, 0]
        for row, (label, result) in enumerate(shown.items()):
            for begin, until, connected in result["series"]["connectivity"]:
                colour = GOOD if connected else BAD
                axis.broken_barh([(begin, until - begin)], (row - 0.35, 0.7), facecolor=colour)
            ratio = result["metrics"]["source_sink_connected_ratio"]
            if ratio is not None:
                spoken.append(f"{label}: connected {100 * ratio:.1f} % of the measured window")
        axis.set_yticks(range(len(shown)), list(shown))
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        end = max(result["series"]["ended_s"] for result in shown.values())
        faults = shared_by(cells, list(shown.values()))
        mark(axis, faults, end)
        axis.set_xlim(0, end)
        axis.set_xlabel(f"time since start (s){HINT if faults else ''}")
        for colour, name in ((GOOD, "a path exists"), (BAD, "no path")):
            axis.plot([], [], color=colour, linewidth=6, label=name)
        drawing.legend(loc="outside upper right", ncols=2, fontsize=8)
        title = "Were source and sink connected at all? (ground truth)"
        return finish(drawing, "connectivity", title, f"{'; '.join(spoken)}.")


def extent(points: Sequence[Sequence[float]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns the extent of a map in x and y: all points with a margin, and neither side too thin."""
    lows, highs = ([pick(point[i] for point in points) for i in (0, 1)] for pick in (min, max))
    wide, high = highs[0] - lows[0], highs[1] - lows[1]
    wide = max(wide, high / TALLEST) or 1.0
    sides = (wide, max(high, FLATTEST * wide))
    middles = [(low + most) / 2 for low, most in zip(lows, highs, strict=True)]
    (left, right), (bottom, top) = (
        (middle - ROOM * side, middle + ROOM * side) for middle, side in zip(middles, sides, strict=True)
    )
    return (left, right), (bottom, top)


def levels(labels: Sequence[tuple[float, float, str]]) -> list[int]:
    """Returns how many points above its position to write each label so that none covers another.

    Positions are in widths of the map.
    """
    # Each label that is placed already excludes at most two levels.
    nearest_first = sorted(range(-len(labels), len(labels) + 1), key=lambda step: (abs(step), -step))
    taken: list[tuple[float, float, int]] = []
    found = []
    for x, y, text in labels:
        begin, end = MAP_POINTS * x, MAP_POINTS * x + LETTER_POINTS * len(text)
        spot = round(MAP_POINTS * y)
        height = next(
            height
            for height in (4 + LINE_POINTS * step for step in nearest_first)
            if all(
                end < other_begin or other_end < begin or abs(spot + height - other) >= LINE_POINTS
                for other_begin, other_end, other in taken
            )
        )
        taken.append((begin, end, spot + height))
        found.append(height)
    return found
