"""Draws a deployment plan as SVG: steps with their windows, error policies and replicas."""

from html import escape

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.planning.query_graph import COLOURS, Step, edges_of, steps_of
from orchestrator.apps.dataflow.planning.query_layout import MARGIN, Box, layout

_PAD, _LINE, _TITLE, _PILL = 14, 17, 20, 22
_CHAR, _SMALL_CHAR = 7.8, 6.7
_MOST_PILLS, _PILLS_A_ROW = 12, 3
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #33373d; }
  .name { font-size: 14px; font-weight: 600; fill: #14171a; }
  .kind { fill: #6b7280; }
  .rule { fill: #14171a; }
  .pill { font-size: 11px; }
  .title { font-size: 15px; font-weight: 600; fill: #14171a; }
  path { fill: none; stroke: #8b93a1; stroke-width: 1.6; }
"""


def svg(plan: DeploymentPlan) -> str:
    """Returns a self-contained drawing."""
    steps = {step.name: step for step in steps_of(plan)}
    edges = edges_of(plan)
    boxes, lanes = layout(steps, [(start, end) for start, end, _ in edges], _size)
    width = max(box.x + box.width for box in boxes.values()) + MARGIN
    height = max(box.y + box.height for box in (*boxes.values(), *lanes.values())) + MARGIN
    title = f"{plan.query.name}: {plan.query.reliability.replace('_', ' ')}"
    drawn = [_edge(start, end, label, boxes, lanes) for start, end, label in edges]
    drawn += [_box(steps[name], box) for name, box in boxes.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{_STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill:#8b93a1;stroke:none"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 4}">{escape(title)}</text>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _pills(step: Step) -> list[str]:
    hidden = len(step.replicas) - _MOST_PILLS
    return list(step.replicas) if hidden <= 0 else [*step.replicas[:_MOST_PILLS], f"and {hidden} more"]


def _pill_width(step: Step) -> float:
    return max(len(pill) for pill in _pills(step)) * _SMALL_CHAR + 14


def _size(step: Step) -> tuple[float, float]:
    pills = _pills(step)
    a_row = min(_PILLS_A_ROW, len(pills))
    texts = [len(step.name) * _CHAR * 1.08, *(len(text) * _SMALL_CHAR for text in (step.kind, *step.rules))]
    width = max(*texts, a_row * (_pill_width(step) + 6) - 6) + 2 * _PAD
    rows = -(-len(pills) // _PILLS_A_ROW)
    return width, 2 * _PAD + _TITLE + _LINE * (len(step.rules) + 1) + rows * _PILL - 2


def _box(step: Step, box: Box) -> str:
    colour = COLOURS[step.role]
    x, y = box.x + _PAD, box.y + _PAD + 11
    radius = 8 if step.role == "operator" else 20
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{radius}" fill="#ffffff" stroke="{colour}" stroke-width="1.6"/>',
        f'<text class="name" x="{x:.1f}" y="{y:.1f}">{escape(step.name)}</text>',
        f'<text class="kind" x="{x:.1f}" y="{y + _TITLE:.1f}">{escape(step.kind)}</text>',
    ]
    y += _TITLE
    for rule in step.rules:
        y += _LINE
        parts.append(f'<text class="rule" x="{x:.1f}" y="{y:.1f}">{escape(rule)}</text>')
    wide = _pill_width(step)
    for number, pill in enumerate(_pills(step)):
        left = x + number % _PILLS_A_ROW * (wide + 6)
        top = y + 8 + number // _PILLS_A_ROW * _PILL
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="18" rx="9" fill="{colour}" '
            f'fill-opacity="0.1"/><text class="pill" text-anchor="middle" x="{left + wide / 2:.1f}" '
            f'y="{top + 13:.1f}">{escape(pill)}</text>'
        )
    return "<g>" + "".join(parts) + "</g>"


def _edge(
    start: str, end: str, label: str, boxes: dict[str, Box], lanes: dict[tuple[str, str, int], Box]
) -> str:
    first, last = boxes[start], boxes[end]
    path = f"M{first.x + first.width:.1f} {first.middle:.1f}"
    x, y = first.x + first.width, first.middle
    through = [lane for key, lane in sorted(lanes.items()) if key[:2] == (start, end)]
    for lane in through:
        path += _curve(x, y, lane.x, lane.middle) + f" L{lane.x + lane.width:.1f} {lane.middle:.1f}"
        x, y = lane.x + lane.width, lane.middle
    path += _curve(x, y, last.x, last.middle)
    text = f'<path d="{path}" marker-end="url(#tip)"/>'
    if label:
        ends = (through[-1].x, x, y, y) if through else (x, last.x, y, last.middle)
        middle = (ends[0] + ends[1]) / 2, (ends[2] + ends[3]) / 2 - 6
        text += (
            f'<text class="pill" text-anchor="middle" x="{middle[0]:.1f}" y="{middle[1]:.1f}">{label}</text>'
        )
    return text


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (x + to_x) / 2
    return f" C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
