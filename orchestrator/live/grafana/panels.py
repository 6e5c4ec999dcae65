"""Panels as values, and how they become the JSON of a dashboard."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

WIDTH = 24
"""Columns of a dashboard."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATE = "$__rate_interval"
"""Grafana puts in a time that holds at least four scrapes."""

Kind = Literal["timeseries", "stat", "table", "state-timeline"]


class Query(NamedTuple):
    """``rare``: it may be empty while all is well, such as a count of errors that did not happen."""

    expression: str
    legend: str = ""
    rare: bool = False


class Panel(NamedTuple):
    """``unit`` is one of Grafana's. ``width`` and ``height`` are in columns and rows of its grid."""

    title: str
    queries: Sequence[Query]
    text: str
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    least: float | None = 0
    most: float | None = None
    stacked: bool = False


class Row(NamedTuple):
    title: str
    panels: Sequence[Panel]


def laid_out(rows: Iterable[Row], note: Callable[[Panel], str] = lambda _: "") -> list[dict[str, Any]]:
    """Returns the panels of all rows, from left to right and from top to bottom. ``note``: what is added to
    the description of a panel.
    """
    made: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        place = {"h": 1, "w": WIDTH, "x": 0, "y": top}
        title = {"type": "row", "title": row.title, "collapsed": False, "panels": []}
        made.append({**title, "id": len(made) + 1, "gridPos": place})
        top += 1
        left = tallest = 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                left, top, tallest = 0, top + tallest, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            text = f"{panel.text} {note(panel)}".rstrip()
            made.append({**_panel(panel._replace(text=text)), "id": len(made) + 1, "gridPos": place})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
    return made


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "custom": _custom(panel)}
    if panel.least is not None:
        defaults["min"] = panel.least
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.kind in ("stat", "state-timeline"):
        defaults["noValue"] = "–"
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "targets": list(_targets(panel)),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel.kind),
        **({"transformations": _TABLE} if panel.kind == "table" else {}),
    }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    at_once = panel.kind in ("stat", "table")
    for number, query in enumerate(panel.queries):
        yield {
            "refId": chr(ord("A") + number),
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "instant": at_once,
            "range": not at_once,
            "format": "table" if panel.kind == "table" else "time_series",
            **({"exemplar": True} if panel.unit == "s" and panel.kind == "timeseries" else {}),
        }


def _custom(panel: Panel) -> dict[str, Any]:
    if panel.kind != "timeseries":
        return {}
    stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
    fill = 25 if panel.stacked else 0
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": fill,
        "showPoints": "auto",
        "stacking": stacking,
    }


def _options(kind: Kind) -> dict[str, Any]:
    match kind:
        case "timeseries":
            legend = {
                "displayMode": "table",
                "placement": "right",
                "showLegend": True,
                "calcs": ["lastNotNull"],
            }
            return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
        case "state-timeline":
            legend = {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []}
            return {
                "legend": legend,
                "tooltip": {"mode": "single", "sort": "none"},
                "mergeValues": True,
                "showValue": "auto",
                "rowHeight": 0.8,
            }
        case "stat":
            return {
                "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
                "colorMode": "value",
                "graphMode": "none",
                "justifyMode": "auto",
                "orientation": "auto",
                "textMode": "auto",
                "wideLayout": True,
                "showPercentChange": False,
                "percentChangeColorMode": "standard",
            }
        case "table":
            return {"showHeader": True, "cellHeight": "sm", "frameIndex": 0}


_TABLE = [
    {"id": "merge", "options": {}},
    {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True, "job": True}}},
]
