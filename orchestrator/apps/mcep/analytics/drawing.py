"""The figures of moving interests in the report: how late situations came, where they and operators were."""

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


def situations_map(cells: Sequence[Cell]) -> Figure | None:
    """Of the first run that has any."""
    for cell in cells:
        for _, result in cell.runs:
            places: dict[str, list[list[float]]] = result["series"].get("situation_places") or {}
            if any(places.values()):
                return _mapped(cell, places)
    return None


def _mapped(cell: Cell, places: dict[str, list[list[float]]]) -> Figure:
    with canvas(1, figsize=(WIDTH, WIDTH)) as (drawing, axes):
        for name, found in places.items():
            axes[0, 0].plot([x for x, _ in found], [y for _, y in found], ".", label=name)
        axes[0, 0].set_aspect("equal", adjustable="datalim")
        axes[0, 0].set_xlabel("x (m)")
        axes[0, 0].set_ylabel("y (m)")
        axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, fontsize=8)
        title = "Where situations were" + (f" ({cell.label})" if cell.label else "")
        number = sum(map(len, places.values()))
        text = f"{number} places: of each situation the middle of its events, to a metre."
        return finish(drawing, "situations-map", title, text)


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


def operators_by_broker(cells: Sequence[Cell]) -> Figure | None:
    """Of the first run in which an operator moved."""
    for cell in cells:
        for _, result in cell.runs:
            places: dict[str, list[list[float]]] = result["series"].get("operator_places") or {}
            if any(len(line) > 1 for line in places.values()):
                return _placed(cell, places, result["series"]["operator_brokers"])
    return None


def _placed(cell: Cell, places: dict[str, list[list[float]]], brokers: Sequence[str]) -> Figure:
    end = max(at for line in places.values() for at, _ in line)
    with canvas(1, figsize=(WIDTH, 1.4 + 0.14 * min(len(brokers), 40))) as (drawing, axes):
        for number, (name, line) in enumerate(places.items()):
            shift = 0.08 * (number - (len(places) - 1) / 2)  # those at one broker stay apart
            times = [*(at for at, _ in line), end * 1.05 + 1]
            at = [*(broker + shift for _, broker in line), line[-1][1] + shift]
            axes[0, 0].step(times, at, where="post", label=name)
        axes[0, 0].set_yticks(range(len(brokers)), brokers, fontsize=7)
        axes[0, 0].set_ylim(-0.6, len(brokers) - 0.4)
        axes[0, 0].set_xlabel("time since start (s)")
        axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=8)
        count = sum(len(line) - 1 for line in places.values())
        title = "Operators by broker" + (f" ({cell.label})" if cell.label else "")
        text = f"{len(places)} operators moved {count} times."
        return finish(drawing, "operators-by-broker", title, text)
