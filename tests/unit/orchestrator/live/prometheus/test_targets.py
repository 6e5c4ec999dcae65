"""Prometheus finds the runs that go on, and forgets them when they end."""

import json
from pathlib import Path

import msgspec
import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from orchestrator.live.facts import read_facts
from orchestrator.live.prometheus.targets import RunTarget, TargetFile, run_target, service_discovery
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run

pytestmark = pytest.mark.unit

LABELS = {"run": "r1", "experiment": "line", "seed": "7", "k": "2", "backend": "netns"}


def test_a_run_and_each_of_its_nodes_is_a_target() -> None:
    groups = json.loads(service_discovery([RunTarget(LABELS, ("a", "b"))], "127.0.0.1:80"))
    assert [group["targets"] for group in groups] == [["127.0.0.1:80"]] * 3
    assert [group["labels"]["__metrics_path__"] for group in groups] == [
        "/runs/r1/metrics",
        "/runs/r1/nodes/a/metrics",
        "/runs/r1/nodes/b/metrics",
    ]
    of_run, of_a, _ = (group["labels"] for group in groups)
    assert of_run == {**LABELS, "instance": "r1", "__metrics_path__": "/runs/r1/metrics"}
    assert of_a["node"] == "a" and of_a["instance"] == "r1/a"


def test_a_strange_name_of_a_node_stays_within_its_path() -> None:
    groups = json.loads(service_discovery([RunTarget(LABELS, ("a/../b?c",))], "x"))
    assert groups[1]["labels"]["__metrics_path__"] == "/runs/r1/nodes/a%2F..%2Fb%3Fc/metrics"
    assert groups[1]["labels"]["node"] == "a/../b?c"


def test_labels_come_from_what_was_planned(tmp_path: Path) -> None:
    directory = RunDirectory(known_run(tmp_path).write(seed=4))
    facts = read_facts(directory)
    assert facts is not None
    assert run_target(directory, facts).labels == {
        "run": "20260301-120000-aaaa",
        "experiment": "known",
        "seed": "4",
        "k": "2",
        "backend": "",
    }


def test_nodes_in_virtual_time_cannot_be_asked_and_are_no_targets(tmp_path: Path) -> None:
    for writer, nodes in (
        (known_run(tmp_path / "virtual"), ()),
        (known_run(tmp_path / "real").in_real_time(), ("n1", "n2", "n3", "n9")),
    ):
        directory = RunDirectory(writer.write())
        facts = read_facts(directory)
        assert facts is not None and facts.nodes == ("n1", "n2", "n3", "n9")
        assert run_target(directory, facts).nodes == nodes


def query(**replicas: int) -> dict[str, object]:
    """A plan with a source, two operators and a sink, with so many replicas each."""
    names = ("camera", "detect", "recognise", "screen")
    operators = tuple(
        OperatorSpec(name, "work", (names[index - 1],) if index else ()) for index, name in enumerate(names)
    )
    placed = (Replica(name, index, "n1") for name in names for index in range(replicas.get(name, 1)))
    return {
        "kind": "query",
        "plan": msgspec.to_builtins(DeploymentPlan(Query("q", operators), tuple(placed))),
    }


@pytest.mark.parametrize(
    ("apps", "k"),
    [
        ({"one": query(detect=2, recognise=3), "two": query(detect=1)}, "3"),
        ({"one": query(), "two": query(recognise=4)}, "4"),
        ({"one": query(camera=5, screen=5)}, "1"),
        ({"load": {"kind": "flows", "flows": []}}, ""),
        ({"one": {"kind": "query", "plan": {"replicas": 7}}}, ""),
    ],
)
def test_k_is_the_most_replicas_that_were_planned(tmp_path: Path, apps: dict[str, object], k: str) -> None:
    """Whatever the experiment says, such as ``auto``, and however many applications it has."""
    path = known_run(tmp_path).write(factors={"replicas": "auto"})
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "apps": apps}))
    directory = RunDirectory(path)
    facts = read_facts(directory)
    assert facts is not None
    assert run_target(directory, facts).labels["k"] == k


def test_the_file_is_replaced_when_the_list_has_changed_and_empty_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    file = TargetFile(path, "127.0.0.1:80")
    file.write([RunTarget(LABELS, ("a",))])
    first = path.stat().st_ino
    assert len(json.loads(path.read_text())) == 2
    file.write([RunTarget(LABELS, ("a",))])
    assert path.stat().st_ino == first
    file.write([RunTarget(LABELS, ("a", "b"))])
    assert len(json.loads(path.read_text())) == 3
    file.close()
    assert json.loads(path.read_text()) == []
    assert list(tmp_path.iterdir()) == [path]
