"""The plan of moving interests as people read it: for `rove plan`, and drawings for --graph."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from node_agent.apps.mcep.config import QueryConfig, drive_of, query_of
from orchestrator.apps.mcep.foretelling import foretold_text
from orchestrator.apps.mcep.migrating import migrate_lines
from orchestrator.apps.mcep.plan import Recorded, parameters_text, query_line
from orchestrator.apps.mcep.reusing import reuse_lines

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 640.0
MARGIN = 20.0


def plan_lines(recorded: Recorded) -> "Iterator[Text]":
    from rich.text import Text

    settings = recorded.settings
    for each in settings.queries:
        yield Text(f"{each.name}: {query_line(each)}")
        yield Text(f"  {each.situation}: {parameters_text(each)}")
        graph = query_of(each).graph
        for stream in graph.streams:
            where = f" on {each.hosts[stream.successor]}" if stream.successor in each.hosts else ""
            yield Text(f"  {stream.producer} → {stream.successor}{where}")
        promise = f"order {each.order}, completeness {each.completeness}"
        yield Text(f"  home {each.home}; {promise}{', with suppression' if each.suppression else ''}")
        if each.foretold is not None:
            yield Text(f"  {foretold_text(each.foretold)}")
        for line in migrate_lines(each.migrate) if each.migrate is not None else ():
            yield Text(f"  {line}")
        if each.asks:
            same = [other.name for other in settings.queries if other.asks == each.asks]
            yield Text(f"  shares graphs of the same region: {', '.join(same)}")
    for line in reuse_lines(settings.reuse) if settings.reuse is not None else ():
        yield Text(line)
    yield Text(f"brokers keep events for {settings.ttl:g} s; clients read every {settings.every:g} s")
    for name, (x0, y0, x1, y1) in settings.areas.items():
        if name in settings.polygons:
            corners = ", ".join(f"({x:g}, {y:g})" for x, y in settings.polygons[name])
            yield Text(f"  {name}: the polygon {corners} m")
        else:
            yield Text(f"  {name}: ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) m")


def mermaid(recorded: Recorded) -> str:
    lines = ["flowchart LR"]
    for number, query in enumerate(recorded.settings.queries):
        graph = query_of(query).graph
        names = [*graph.order, "consumer"]
        for place, name in enumerate(names):
            host = query.hosts.get(name, query.focal if name == "consumer" else "brokers")
            lines.append(f'  q{number}n{place}["{name}<br>{host}"]')
        for stream in graph.streams:
            ends = names.index(stream.producer), names.index(stream.successor)
            lines.append(f"  q{number}n{ends[0]} --> q{number}n{ends[1]}")
    return "\n".join(lines) + "\n"


def svg(recorded: Recorded) -> str:
    """The areas of brokers, where clients begin, and the first interests; y grows upwards, as on the page."""
    settings = recorded.settings
    boxes = settings.areas.values()
    x0, y0 = min(box[0] for box in boxes), min(box[1] for box in boxes)
    x1, y1 = max(box[2] for box in boxes), max(box[3] for box in boxes)
    scale = WIDTH / (x1 - x0)

    def at(x: float, y: float) -> tuple[float, float]:
        return MARGIN + (x - x0) * scale, MARGIN + (y1 - y) * scale

    width, height = WIDTH + 2 * MARGIN, (y1 - y0) * scale + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="12">'
    ]
    named = []
    for name, (left, top, right, bottom) in settings.areas.items():
        corners = settings.polygons.get(name, ((left, top), (right, top), (right, bottom), (left, bottom)))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*corner) for corner in corners))
        parts.append(f'<polygon points="{points}" fill="#f6f8fb" stroke="#336"/>')
        drawn = [at(*corner) for corner in corners]
        x, y = (sum(each) / len(drawn) for each in zip(*drawn, strict=True))
        named.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="#336">{escape(name)}</text>')
    focal = {query.focal for query in settings.queries}
    starts = {client: drive_of(recorded.drives[client]).at(0.0) for client in settings.clients}
    for query in settings.queries:
        x, y = at(starts[query.focal].x, starts[query.focal].y)
        parts.append(_region(query, x, y, query.radius * scale))
        look, title = 'text-anchor="middle" font-weight="bold"', f"{query.name} around {query.focal}"
        named.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" {look}>{escape(title)}</text>')
    for client, place in starts.items():
        x, y = at(place.x, place.y)
        look = f'r="3" fill="{"#a60" if client in focal else "#555"}"'
        title = f"<title>{escape(client)}</title>"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}>{title}</circle>')
    return "\n".join([*parts, *named, "</svg>\n"])


def _region(query: QueryConfig, x: float, y: float, radius: float) -> str:
    look = 'fill="#fc0" fill-opacity="0.2" stroke="#a60"'
    if query.shape == "square":
        corner = f'x="{x - radius:.1f}" y="{y - radius:.1f}"'
        return f'<rect {corner} width="{2 * radius:.1f}" height="{2 * radius:.1f}" {look}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}/>'
