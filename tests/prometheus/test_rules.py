"""Rules and queries as Prometheus itself reads them: with promtool."""

import subprocess
from pathlib import Path

import yaml

from orchestrator.live.grafana.files import FOLDER
from orchestrator.live.prometheus import rules
from orchestrator.live.prometheus.service import configuration, lines_to_add
from tests.unit.orchestrator.live.grafana.queries import all_queries, variable_queries

RULES = FOLDER / "prometheus" / "rules.yml"
TESTS = FOLDER / "prometheus" / "tests"


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_can_be_read() -> None:
    found = len(rules.ALERTS) + len(rules.RECORDINGS)
    assert f"{found} rules found" in promtool("check", "rules", RULES)


def test_each_alert_fires_when_it_is_earned_and_not_otherwise() -> None:
    promtool("test", "rules", *sorted(TESTS.glob("*.yml")))


def test_each_alert_is_tested_both_ways() -> None:
    fires: set[str] = set()
    stays: set[str] = set()
    for file in TESTS.glob("*.yml"):
        for test in yaml.safe_load(file.read_text())["tests"]:
            for expected in test.get("alert_rule_test", ()):
                (fires if expected.get("exp_alerts") else stays).add(expected["alertname"])
    names = {alert.name for alert in rules.ALERTS}
    assert fires == stays == names


def test_every_query_of_every_dashboard_parses(tmp_path: Path) -> None:
    queries = [*all_queries(), *variable_queries()]
    recorded = [{"record": f"q{n}", "expr": query.filled} for n, query in enumerate(queries)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    assert f"{len(queries)} rules found" in promtool("check", "rules", file)


def test_configurations_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules.text())
    (tmp_path / "token").write_text("secret")
    for name, text in (
        ("plain.yml", configuration("127.0.0.1:8470", "rules.yml")),
        ("token.yml", configuration("127.0.0.1:8470", "rules.yml", str(tmp_path / "token"))),
        ("added.yml", lines_to_add("127.0.0.1:8470", "rules.yml", needs_token=False)),
    ):
        (tmp_path / name).write_text(text)
        promtool("check", "config", tmp_path / name)
    promtool("check", "config", FOLDER / "prometheus" / "prometheus.yml")
