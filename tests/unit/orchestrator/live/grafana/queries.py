"""Every query of the dashboards and of what sets them up, and what is in them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from orchestrator.live.grafana.document import DASHBOARDS, document
from orchestrator.live.prometheus import rules

NAME = re.compile(r"(?<![\w:])(rove_[a-z0-9_]+|up|ALERTS)(?=[\[{ )]|$)(\{[^}]*\})?", re.MULTILINE)
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
VARIABLES = {
    "$__rate_interval": "20s",
    "$__range": "15m",
    "$job": "rove",
    "$run": ".*",
    "$node": ".*",
    "$operator": ".*",
    "$experiment": ".*",
}


class Found(NamedTuple):
    """``place``: dashboard and panel. ``rare``: may be empty while all is well."""

    place: str
    expression: str
    legend: str = ""
    rare: bool = False

    @property
    def filled(self) -> str:
        """As Grafana sends it, with all runs, nodes and operators chosen."""
        text = self.expression
        for name, value in VARIABLES.items():
            text = text.replace(name, value)
        return text

    def chosen(self) -> Iterator[tuple[str, set[str]]]:
        """Yields each metric with the labels by which series are chosen."""
        for name, labels in NAME.findall(self.expression):
            yield name, set(LABEL.findall(labels))


def panel_queries() -> list[Found]:
    return [
        Found(f"{board.uid}: {panel.title}", query.expression, query.legend, query.rare)
        for board in DASHBOARDS
        for row in board.rows
        for panel in row.panels
        for query in panel.queries
    ]


def all_queries() -> list[Found]:
    """Those of panels, annotations and rules."""
    found = panel_queries()
    for board in DASHBOARDS:
        for annotation in document(board)["annotations"]["list"]:
            place = f"{board.uid}: {annotation['name']}"
            found.append(Found(place, annotation["expr"], annotation["titleFormat"], rare=True))
    found += [Found(f"record {each.name}", each.expression) for each in rules.RECORDINGS]
    found += [Found(f"alert {each.name}", each.expression, rare=True) for each in rules.ALERTS]
    return found


def variable_queries() -> list[Found]:
    """The series that variables take their values from."""
    found = []
    for board in DASHBOARDS:
        for variable in document(board)["templating"]["list"]:
            query: Any = variable["query"]
            if isinstance(query, dict):
                inner = re.fullmatch(r"label_values\((.*), (\w+)\)", query["query"])
                assert inner is not None
                found.append(Found(f"{board.uid}: ${variable['name']}", inner[1], f"{{{{{inner[2]}}}}}"))
    return found
