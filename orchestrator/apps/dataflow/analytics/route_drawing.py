"""Draws which replica each upstream replica used."""

from collections.abc import Sequence

from orchestrator.results.colours import PAPER, SERIES
from orchestrator.results.faults import HINT, died_s, faults_of, mark, spoken
from orchestrator.results.svg import MOST_ROWS, WIDTH, Figure, canvas, finish
from orchestrator.results.views import Cell, grouped, most_telling, which


def routes(cells: Sequence[Cell]) -> Figure | None:
    """Draws, for the run with most replicas, which replica each upstream used, from switch to switch.

    The line of a choice ends when its agent ends.
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
    places = run.apps[cell.app].places if cell.app in run.apps else {}
    node_of = {name: node for node, names in places.items() for name in names}
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
