"""Dashboards and rules: made from the list of metrics, and up to date in the repository."""

import re
from itertools import pairwise

import pytest
import yaml

from orchestrator.live.grafana.document import DASHBOARDS, document
from orchestrator.live.grafana.files import files, outdated
from orchestrator.live.metrics import TARGET_LABELS, Declared, metrics
from orchestrator.live.prometheus import rules
from tests.unit.orchestrator.live.grafana.queries import Found, all_queries, variable_queries

pytestmark = pytest.mark.unit

OF_TARGETS = {*TARGET_LABELS, "node", "job", "instance"}
CHART = "timeseries"
OWN = {"up": OF_TARGETS, "ALERTS": OF_TARGETS | {"alertname", "alertstate"}}
"""Series that Prometheus makes itself."""
QUERIES = [*all_queries(), *variable_queries()]


def series() -> dict[str, Declared]:
    return {name: declared for declared in metrics().values() for name in declared.series}


def labels_of(name: str) -> set[str]:
    if name in OWN:
        return set(OWN[name])
    return OF_TARGETS | set(series()[name].labels) | ({"le"} if name.endswith("_bucket") else set())


def test_the_folder_dashboards_is_up_to_date() -> None:
    assert outdated() == [], "python -m orchestrator.live.grafana --write"


def test_the_same_files_are_made_each_time() -> None:
    assert files() == files()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_a_query_uses_metrics_and_labels_of_the_list(query: Found) -> None:
    chosen = list(query.chosen())
    assert chosen, query.expression
    known = series()
    for name, labels in chosen:
        assert name in known or name in OWN, f"{name} is not in the list"
        assert labels <= labels_of(name), f"{name} has no {labels - labels_of(name)}"
    for grouped in re.findall(r"\bby \(([^)]*)\)", query.expression):
        names = {name.strip() for name in grouped.split(",")}
        assert any(names <= labels_of(name) for name, _ in chosen), query.expression


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_a_legend_names_labels_that_the_result_has(query: Found) -> None:
    shown = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", query.legend))
    groups = re.findall(r"\bby \(([^)]*)\)", query.expression)
    if groups:
        kept = {name.strip() for name in groups[0].split(",")}
        assert shown <= kept, query.expression
    else:
        assert all(shown <= labels_of(name) for name, _ in query.chosen())


def test_every_metric_is_on_some_dashboard() -> None:
    shown = {name for query in all_queries() for name, _ in query.chosen()}
    missing = {name for name, declared in metrics().items() if not shown & set(declared.series)}
    rest = {
        "rove_run_info",  # what runs are told apart by
        "rove_runs_watched",  # of the server, not of a run
    }
    flows = {name for name in missing if name.startswith("rove_flow_")}  # three of a dozen are shown
    twins = {name for name in missing if name.startswith("rove_tuples_")}  # in tuples or in bytes
    assert missing - flows - twins <= rest


def test_each_dashboard_has_the_variables_that_its_queries_use() -> None:
    for board in DASHBOARDS:
        made = document(board)
        named = {variable["name"] for variable in made["templating"]["list"]}
        used = set(re.findall(r"\$(?!__)(\w+)", str(made["panels"]) + str(made["annotations"])))
        assert used <= named, board.uid
        assert {"datasource", "job"} <= named


def test_panels_lie_side_by_side_and_have_numbers_of_their_own() -> None:
    for board in DASHBOARDS:
        panels = document(board)["panels"]
        assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
        places = [panel["gridPos"] for panel in panels]
        assert all(place["x"] + place["w"] <= 24 for place in places)
        taken = [
            (x, y)
            for place in places
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(taken) == len(set(taken)), f"panels of {board.uid} overlap"
        assert all(one["y"] <= other["y"] for one, other in pairwise(places))


def test_dashboards_have_names_of_their_own_and_say_what_they_show() -> None:
    assert len({board.uid for board in DASHBOARDS}) == len(DASHBOARDS) == 7
    for board in DASHBOARDS:
        assert all(panel.get("description") for panel in document(board)["panels"] if panel["type"] != "row")


def test_panels_say_what_they_lack_if_the_source_is_records() -> None:
    texts = {
        (board.uid, panel["title"], panel["type"]): panel.get("description", "")
        for board in DASHBOARDS
        for panel in document(board)["panels"]
    }
    for place in (
        ("rove-node", "Memory"),
        ("rove-routing", "Cost of links"),
        ("rove-fleet", "Cost of links"),
        ("rove-validity", "Backlog"),
    ):
        assert texts[*place, CHART].endswith("Of scrapes only: empty if the source is records."), place
    assert "Query D is of scrapes only" in texts["rove-fleet", "Nodes", "table"]
    assert "scrapes" not in texts["rove-run", "Latency", CHART] + texts["rove-validity", "Frames", CHART]


def test_provisioning_is_yaml_that_names_its_version() -> None:
    for path, text in files().items():
        if "/provisioning/" in path:
            assert yaml.safe_load(text)["apiVersion"] == 1
    compose = yaml.safe_load(files()["compose.yml"])
    images = [service["image"] for service in compose["services"].values()]
    assert all(re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image) for image in images), "tags are exact"


def test_grafana_has_the_alerts_of_prometheus() -> None:
    alerting = yaml.safe_load(files()["grafana/provisioning/alerting/rove.yml"])
    expressions = [
        rule["data"][0]["model"]["expr"] for group in alerting["groups"] for rule in group["rules"]
    ]
    assert expressions == [alert.expression for alert in rules.ALERTS]
