"""Figures of a single run: who used whom, and who was where."""

from collections.abc import Sequence

from orchestrator.analytics.faults_view import HINT, died_s, faults_of, mark, spoken
from orchestrator.analytics.svg import FAINT, INK, PAPER, SERIES, Figure, canvas, finish
from orchestrator.analytics.views import Cell, grouped, most_telling, which

WIDTH = 6.6
MOST_ROWS = 16

FLATTEST, TALLEST = 0.3, 1.1
ROOM = 0.55
MAP_POINTS = 0.8 * WIDTH * 72
LETTER_POINTS, LINE_POINTS = 5, 11


def routes(cells: Sequence[Cell]) -> Figure | None:
    """For one run, the one with most replicas: which replica each upstream used, from switch to switch.

    What an agent had chosen ends with it.
    """
    cell, (run, result) = most_telling(cells)
    series = result["series"]
    end = series["ended_s"]
    pairs = grouped(series["routes"], lambda row: f"{row[1]} → {row[2]}")
    if not pairs or end is None:
        return None
    shown = dict(sorted(pairs.items())[:MOST_ROWS])
    used: dict[str, int] = {}
    changes = 0
    faults = faults_of(result)
    node_of = {replica.id: replica.node for replica in run.plan.replicas} if run.plan else {}
    with canvas(figsize=(WIDTH, 1.3 + 0.34 * len(shown))) as (drawing, axes):
        axis = axes[0, 0]
        for row, changes_of_pair in enumerate(shown.values()):
            ends = [change[0] for change in changes_of_pair[1:]] + [end]
            for (begin, chooser, _, target), next_change in zip(changes_of_pair, ends, strict=True):
                changes += 1
                if target is not None:
                    until = min(next_change, died_s(result, node_of.get(chooser, ""), begin))
                    index = int(target.rpartition("/")[2])
                    used.setdefault(f"replica {index}", index)
                    colour = SERIES[index % len(SERIES)]
                    axis.broken_barh(
                        [(begin, until - begin)], (row - 0.35, 0.7), facecolor=colour, edgecolor=PAPER
                    )
        axis.set_yticks(range(len(shown)), list(shown))
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set_xlim(0, end)
        mark(axis, faults, end)
        axis.set_xlabel(f"time since start (s); gap: no route{' or no agent' + HINT if faults else ''}")
        for name, index in sorted(used.items(), key=lambda item: item[1]):
            axis.plot([], [], color=SERIES[index % len(SERIES)], linewidth=6, label=name)
        if used:
            drawing.legend(loc="outside upper right", ncols=min(len(used), 5), fontsize=8)
        rest = f" The first {MOST_ROWS} of {len(pairs)} pairs." if len(pairs) > len(shown) else ""
        alternative = f"Routes in use, {len(shown)} pairs of replica and operator, {changes} changes.{rest}"
        alternative += spoken(run, faults)
        return finish(drawing, "routes", f"Which replica was used{which(cell, run)}", alternative)


def link_deliveries(cells: Sequence[Cell]) -> Figure | None:
    """For one run: what was delivered over each link, beside what its SNR let expect."""
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
    placed: dict[str, list[str]] = {}
    for replica in run.plan.replicas if run.plan else ():
        placed.setdefault(replica.node, []).append(replica.id)
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


def extent(points: Sequence[Sequence[float]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of a map in x and y: all points with some room, and neither side too thin to be looked at."""
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
    """How many points above its spot to write each label so that none covers another.

    Spots are in widths of the map.
    """
    # Each label that is there already rules out at most two levels.
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
