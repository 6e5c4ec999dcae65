"""An experiment file on six real sshd: deployed, run over OLSR on their radios, collected, and taken down."""

import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from node_agent.telemetry.segments import read_records
from orchestrator.errors import EXIT_OK
from orchestrator.runs.backend import Status
from orchestrator.runs.files import parse_lines
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab

pytestmark = pytest.mark.timeout(TEST_S)
ROOT = Path(__file__).parents[2]
PHASES = ("up", "converge", "warm-up", "measure", "stop", "collect")


class Seen(NamedTuple):
    """What was to be seen on n02 while the query flowed."""

    drill: Drill
    config: dict[str, Any]
    modes: dict[str, int]
    routes: str
    as_root: list[str]


@pytest.fixture(scope="module")
def whole(standing_lab: Lab) -> Iterator[Seen]:
    """A run in which an agent is killed and started anew."""
    faults = [{"at": "1s", "for": "1s", "crash": {"operator": "work", "replica": 0}}]
    node = standing_lab.node("n02")
    with Drill(standing_lab, "whole", faults=faults, duration="4s") as drill:
        drill.reach("measure")
        place = drill.on_node(node).parent
        config = json.loads((place / "agent.json").read_text())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place, *place.glob("*.json"))}
        routes = node.as_root("ip", "route", "show", "dev", "wlan0")
        as_root = [line for line in node.processes() if "node_agent.olsr" in line]
        drill.finish()
    yield Seen(drill, config, modes, routes, as_root)


def test_it_is_valid_and_every_node_comes_through_every_phase(lab: Lab, whole: Seen) -> None:
    drill = whole.drill
    assert drill.exit_code == EXIT_OK, drill.verdict
    for phase in PHASES:
        assert [drill.outcome(phase, node).status for node in lab.nodes] == [Status.OK] * 6
    assert drill.delivered(lab.node("n03")) > 0


def test_every_node_says_how_busy_it_was(lab: Lab, whole: Seen) -> None:
    loads = json.loads(whole.drill.run.manifest.read_text())["host_load"]
    assert list(loads) == [node.name for node in lab.nodes]
    assert all(load["wake_ups"] > 0 and load["late_max_ms"] >= 0 for load in loads.values())


def test_nothing_is_left_on_the_nodes_but_what_the_next_run_needs(lab: Lab, whole: Seen) -> None:
    assert lab.leftovers() == []
    for node in lab.nodes:
        assert [path.name for path in (node.home / ".rove").iterdir()] == ["store"]


def test_routing_runs_as_root_on_the_radio_and_knows_everybody(lab: Lab, whole: Seen) -> None:
    assert any(line.startswith("sudo -n") for line in whole.as_root)
    others = [node.address for node in lab.nodes if node.name != "n02"]
    assert all(address in whole.routes for address in others)
    assert "10.77.0.4 via" in whole.routes, "out of its radio's range"


def test_an_agent_that_is_killed_boots_again_and_the_run_tells_of_it(lab: Lab, whole: Seen) -> None:
    found = whole.drill.completeness(lab.node("n02"))
    assert (found.boots, found.missing, found.duplicates) == (2, 0, 0)
    events = parse_lines(whole.drill.run.events.read_bytes())
    assert [event["action"] for event in events if event["kind"] == "fault"] == ["crash", "restart"]
    kinds = [record["kind"] for record in read_records(whole.drill.run.segments("n02"))]
    assert kinds.count("agent_start") == 2 and kinds.count("agent_stop") == 1


def test_the_manifest_has_clocks_nodes_and_checksums(lab: Lab, whole: Seen) -> None:
    manifest = json.loads(whole.drill.run.manifest.read_text())
    assert set(manifest["nodes"]) == {node.name for node in lab.nodes}
    assert all({"msgspec", "pyroute2"} <= set(facts["packages"]) for facts in manifest["nodes"].values())
    assert manifest["clocks"] and manifest["doubts"] == []
    for node in lab.nodes:
        files = [path for path in (whole.drill.run.nodes / node.name).rglob("*") if path.is_file()]
        assert {path.name for path in files} >= {"agent.log", "supervisor.log", "routing.log", "ended.json"}
        for path in files:
            name = str(path.relative_to(whole.drill.run.path))
            assert manifest["files"][name] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_nodes_keys_are_for_the_user_only_and_never_comes_home(whole: Seen) -> None:
    secrets = whole.config["agent"]["keys"].values()
    assert secrets and all(len(secret) >= 32 for secret in secrets)
    assert whole.modes["agent.json"] == whole.modes["order.json"] == 0o600
    assert whole.modes["n02"] == 0o700
    for path in whole.drill.run.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret.encode() in content for secret in secrets), path
            assert path.name != "agent.json"


def test_a_query_in_python_is_shipped_to_those_who_run_it(lab: Lab) -> None:
    (lab.folder / "checkpoint.py").write_text((ROOT / "experiments" / "checkpoint.py").read_text())
    operators = ("camera", "radar", "plausible", "too_fast", "summary", "screen")
    nodes = {name: [node.name] for name, node in zip(operators, lab.nodes, strict=True)}
    changes = {
        "query": {"python": "checkpoint.py:build"},
        "placement": {"policy": "explicit", "nodes": nodes},
    }
    with Drill(lab, "shipped", duration="6s", **changes) as drill:
        assert drill.finish() == EXIT_OK, drill.verdict
    assert drill.delivered(lab.nodes[-1]) > 0
