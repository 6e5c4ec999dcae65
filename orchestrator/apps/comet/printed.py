"""A detection plan as people read it: trees for `rove plan`, drawings for --graph."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from orchestrator.apps.comet.planning.printing import MINUTE, alternatives_text, plan_text
from orchestrator.apps.comet.planning.together import tree_within

if TYPE_CHECKING:
    from rich.text import Text

    from orchestrator.apps.comet.plan import Recorded
    from orchestrator.apps.comet.planned import Detection


MOST_DOUBTS = 5


def plan_lines(planned: "Detection", notes: tuple[str, ...] = ()) -> "Iterator[Text]":
    from rich.text import Text

    yield from map(Text, notes)
    for plan in planned.joint.plans:
        yield Text(plan_text(plan, planned.given))
        yield Text(alternatives_text(plan, tree_within(plan.tree.task, planned.given), planned.given))
    if len(planned.joint.plans) > 1:
        joint, apart = planned.joint.cost * MINUTE, planned.joint.apart * MINUTE
        yield Text(f"together: costs {joint:.4g} per minute; {apart:.4g} if nothing were shared")
    if planned.doubts:
        rest = len(planned.doubts) - MOST_DOUBTS
        more = [f"and {rest} more"] if rest > 0 else []
        listed = "; ".join([*planned.doubts[:MOST_DOUBTS], *more])
        yield Text(
            f"detections may be later than promised: {listed}. "
            "With disconnections: longest, plans allow for the longest times that links are down."
        )


def _edges(recorded: "Recorded") -> Iterator[tuple[str, str, str]]:
    """Each stream's first and last node, and what it is."""
    seen: set[int] = set()
    for config in recorded.configs.values():
        for stream in config.plan.streams:
            if stream.number in seen or len(stream.path) == 1:
                continue
            seen.add(stream.number)
            mark = "pull" if stream.pulled else "push"
            names = ", ".join(("!" if stream.absent else "") + event for event in stream.events)
            via = "" if len(stream.path) == 2 else f" over {', '.join(stream.path[1:-1])}"
            yield stream.origin, stream.end, f"{mark} {names}{via}"


def mermaid(recorded: "Recorded") -> str:
    lines = ["flowchart BT"]
    numbers = {node: f"n{place}" for place, node in enumerate(recorded.configs)}
    lines += [f'  {number}["{node}"]' for node, number in numbers.items()]
    for origin, end, text in _edges(recorded):
        arrow = "-.->" if text.startswith("pull") else "-->"
        lines.append(f'  {numbers[origin]} {arrow}|"{text}"| {numbers[end]}')
    return "\n".join(lines) + "\n"


_ROW, _COLUMN, _BOX_WIDTH, _BOX_HEIGHT = 110, 220, 110, 34


def svg(recorded: "Recorded") -> str:
    """Nodes in rows, sinks on top; pulled streams are dashed."""
    edges = list(_edges(recorded))
    level = {promise.sink: 0 for promise in recorded.promises}
    for _ in recorded.configs:
        for origin, end, _ in edges:
            if end in level:
                level[origin] = (
                    max(level.get(origin, 0), level[end] + 1) if origin not in level else level[origin]
                )
    rows: dict[int, list[str]] = {}
    for node in recorded.configs:
        rows.setdefault(level.get(node, 0), []).append(node)
    places = {
        node: (20 + _COLUMN * place + _BOX_WIDTH / 2, 30 + _ROW * row)
        for row, nodes in rows.items()
        for place, node in enumerate(nodes)
    }
    width = 40 + _COLUMN * max(map(len, rows.values()))
    height = 60 + _ROW * max(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">'
    ]
    for origin, end, text in edges:
        (x1, y1), (x2, y2) = places[origin], places[end]
        dash = ' stroke-dasharray="5 4"' if text.startswith("pull") else ""
        parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555"{dash}/>')
        middle_x, middle_y = (x1 + 2 * x2) / 3, (y1 + 2 * y2) / 3
        parts.append(f'<text x="{middle_x + 4}" y="{middle_y}">{escape(text)}</text>')
    for node, (x, y) in places.items():
        left, top = x - _BOX_WIDTH / 2, y - _BOX_HEIGHT / 2
        parts.append(
            f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" fill="#eef" '
            f'stroke="#336"/><text x="{x}" y="{y + 4}" text-anchor="middle">{escape(node)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
