"""Makes the JSON of dashboards: panels, variables, and marks for switches, faults and phases."""

import re
from collections.abc import Sequence
from typing import Any

from node_agent.agent import metrics as a
from node_agent.apps.dataflow import metrics as d
from orchestrator.live import metrics as m
from orchestrator.live.grafana.boards.comparison import COMPARISON
from orchestrator.live.grafana.boards.faces import FACES
from orchestrator.live.grafana.boards.fleet import FLEET
from orchestrator.live.grafana.boards.one_node import ONE_NODE
from orchestrator.live.grafana.boards.overview import OVERVIEW
from orchestrator.live.grafana.boards.routing import ROUTING
from orchestrator.live.grafana.boards.validity import VALIDITY
from orchestrator.live.grafana.common import NODE, RUN, SWEEP, Dashboard
from orchestrator.live.grafana.panels import DATASOURCE, Panel, laid_out
from orchestrator.live.prometheus import backfill, targets
from orchestrator.live.prometheus.rules import SCRAPE_S

SCHEMA_VERSION = 39
TAG = "rove"
JOBS = f"live : {targets.JOB}, records : {backfill.JOB}"
DASHBOARDS: tuple[Dashboard, ...] = (OVERVIEW, ONE_NODE, ROUTING, FACES, VALIDITY, COMPARISON, FLEET)

_VARIABLES = {
    "experiment": ("Experiment", f'label_values({a.INFO}{{job="$job"}}, experiment)'),
    "run": ("Run", f'label_values({a.INFO}{{job="$job"}}, run)'),
    "node": ("Node", f"label_values({a.INFO}{{{RUN}}}, node)"),
    "operator": ("Operator", f"label_values({d.QUEUE}{{{NODE}}}, replica)"),
}
_STEP = f"{SCRAPE_S}s"


def document(dashboard: Dashboard) -> dict[str, Any]:
    """Returns the JSON that Grafana loads."""
    labels = RUN if "run" in dashboard.variables else SWEEP
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.text,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": _STEP,
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "links": [_LINK],
        "annotations": {"list": _annotations(labels)},
        "templating": {"list": _templating(dashboard.variables)},
        "panels": laid_out(dashboard.rows, _in_records),
    }


def _in_records(panel: Panel) -> str:
    """Says what a panel lacks if the source is *records*: what is only read when somebody asks."""
    lacks = [_NAME.search(query.expression) is not None for query in panel.queries]
    if not any(lacks):
        return ""
    if all(lacks):
        return "Of scrapes only: empty if the source is records."
    letters = ", ".join(chr(ord("A") + number) for number, lack in enumerate(lacks) if lack)
    return f"Query {letters} is of scrapes only: empty if the source is records."


_NAME = re.compile(rf"\b({'|'.join(sorted((*m.ONLY_LIVE, 'ALERTS'), key=len, reverse=True))})\b")
_LINK = {
    "type": "dashboards",
    "title": "Rove",
    "tags": [TAG],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "icon": "external link",
    "tooltip": "",
    "url": "",
}


def _annotations(labels: str) -> list[dict[str, Any]]:
    phase = f"{m.RUN_PHASE}{{{labels}}}"
    marked = (
        (
            "Switches",
            f"sum by (run, replica, downstream) (increase({d.SWITCHES}{{{labels}}}[15s])) > 0",
            "{{replica}} switches its replica of {{downstream}}",
            "blue",
        ),
        ("Faults", f"increase({m.FAULTS_INJECTED}{{{labels}}}[15s]) > 0", "a fault, or its end", "red"),
        ("Phases", f"{phase} unless on (run, phase) {phase} offset 15s", "{{phase}}", "purple"),
    )
    return [
        {
            "name": name,
            "datasource": DATASOURCE,
            "enable": True,
            "iconColor": colour,
            "expr": expression,
            "step": _STEP,
            "titleFormat": title,
            "textFormat": "{{run}}",
            "useValueForTime": False,
        }
        for name, expression, title, colour in marked
    ]


def _templating(names: Sequence[str]) -> list[dict[str, Any]]:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
    }
    job = {
        "name": "job",
        "label": "Source",
        "type": "custom",
        "query": JOBS,
        "current": {"text": "live", "value": targets.JOB, "selected": True},
        "includeAll": False,
        "multi": False,
    }
    return [source, job, *(_variable(name) for name in names)]


def _variable(name: str) -> dict[str, Any]:
    label, query = _VARIABLES[name]
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 2 if name in ("run", "experiment") else 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"], "selected": True},
    }
