"""Somebody else's run directory can be looked at without running the code that lies in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.linkstate.overhead import AGENTS_OWN
from orchestrator.analytics.core.overhead_section import overhead
from orchestrator.analytics.core.radio_section import facts
from orchestrator.analytics.report import views_of
from orchestrator.errors import BadInput
from orchestrator.results.inputs import read_run
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import RunWriter, known_run
from tests.unit.orchestrator.analytics.test_report import page_of, result
from tests.unit.rove_process import rove

SPEC = """
name: foreign
topology:
  name: row
  nodes: [a, b]
  area: 300 m x 100 m
  mobility: {model: static, positions: {a: [0, 50], b: [100, 50]}}
  radio: {model: disc, range: 150 m, bandwidth: 11 Mb/s, latency: 1 ms}
backend: sim
query: {python: "query/theirs.py:build"}
replicas: 1
duration: 5s
"""
RESULT = {
    "metrics": {},
    "series": {"positions": {}, "neighbours": [], "window_s": [0, 1]},
    "apps": {"query": {"kind": "query", "metrics": {"source_sink_connected_ratio": None}, "series": {}}},
}


def test_a_report_does_not_run_the_query_of_the_run(tmp_path: Path) -> None:
    """Row 11: it loaded spec.yaml, and that imported query/*.py."""
    directory = known_run(tmp_path, "foreign", "f1").write()
    (directory / "spec.yaml").write_text(SPEC)
    (directory / "query").mkdir()
    mark = tmp_path / "executed"
    (directory / "query" / "theirs.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    run = read_run(RunDirectory(directory))
    summary = {"run": "f1", "factors": {}, "seed": 1, "verdict": "valid", "metrics": {}}
    found = facts(views_of(RunDirectory(directory), summary, [(run, RESULT)])["query"])
    assert "range" in found, "what spec.yaml says of the radio is still known"
    assert not mark.exists()


EVIL: dict[str, dict[str, Any]] = {
    "switching": {"switching": {"policy": "evil.py:decide"}},
    "placement": {"placement": {"policy": "evil.py:place"}},
    "routing": {"routing": {"protocol": "evil.py:Service"}},
    "link state": {"routing": {"protocol": "olsr", "reader": "evil.py:Reader"}},
    "mobility": {"mobility": {"model": "evil.py:Model"}},
    "path loss": {"radio": {"model": "80211b", "pathloss": {"model": "evil.py:Model"}}},
}


def evil_run(root: Path, **changes: Any) -> tuple[RunDirectory, Path]:
    """A run whose spec.yaml names code, and the file that this code writes if it is run."""
    directory = known_run(root, "foreign", "f1").write()
    network: dict[str, Any] = {key: changes.pop(key) for key in ("mobility", "radio") if key in changes}
    topology: dict[str, Any] = {
        "name": "row",
        "nodes": ["a", "b"],
        "area": "300 m x 100 m",
        "mobility": {"model": "static", "positions": {"a": [0, 50], "b": [100, 50]}},
        **network,
    }
    document: dict[str, Any] = {
        "name": "foreign",
        "topology": topology,
        "backend": "sim",
        "query": "synthetic_chain",
    }
    (directory / "spec.yaml").write_text(json.dumps({**document, "duration": "5s", **changes}))
    mark = root / "executed"
    (directory / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    return RunDirectory(directory), mark


@pytest.mark.parametrize("kind", EVIL)
def test_no_section_of_a_report_runs_code_that_the_run_names(tmp_path: Path, kind: str) -> None:
    """Where only agents count overhead, it loaded the whole experiment to know the routing protocol."""
    directory, mark = evil_run(tmp_path, **EVIL[kind])
    found = result(2, 1, 1)
    found["metrics"]["routing_overhead"] = {AGENTS_OWN: {"sent_bps": 5.0}}
    assert 'id="overhead"' in page_of([(read_run(directory), found)])
    assert not mark.exists()


@pytest.mark.parametrize(
    ("spec", "recorded", "cell"),
    [
        ("ground_truth", None, "<td>5</td>"),
        ({"protocol": "ground_truth"}, None, "<td>5</td>"),
        ({"protocol": "babel"}, None, "<td>–</td>"),
        ({}, None, "<td>–</td>"),
        ([3], None, "<td>–</td>"),
        ("babel", "ground_truth", "<td>5</td>"),
        ("ground_truth", "babel", "<td>–</td>"),
        ("ground_truth", [3], "<td>–</td>"),
    ],
)
def test_the_protocol_is_as_the_manifest_says_or_else_as_the_file(
    tmp_path: Path, spec: Any, recorded: Any, cell: str
) -> None:
    directory, mark = evil_run(tmp_path, routing=spec, **EVIL["switching"])
    manifest = json.loads(directory.manifest.read_text())
    if recorded is not None:
        directory.manifest.write_text(json.dumps({**manifest, "routing": recorded}))
    found = result(2, 1, 1)
    found["metrics"]["routing_overhead"] = {AGENTS_OWN: {"sent_bps": 5.0}}
    summary = {"run": "f1", "factors": {}, "seed": 1, "verdict": "valid", "metrics": {}}
    table = overhead(views_of(directory, summary, [(read_run(directory), found)])["query"])
    assert table.count(cell) == 2, "of the message and of all"
    assert not mark.exists()


def test_no_command_that_looks_at_a_run_runs_its_code(tmp_path: Path) -> None:
    _, mark = evil_run(tmp_path, **EVIL["switching"])
    for words in (
        ("status",),
        ("status", "f1"),
        ("explain", "f1", "--at", "20s"),
        ("replay", "f1", "--policy", "static"),
    ):
        done = rove(tmp_path, *words)
        assert done.returncode == 0 or "no decisions recorded" in done.stderr
        assert not mark.exists(), words


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (b"[" * 100_000, r"no manifest\.json that can be read"),
        (b'{"plan": 3}', "no deployment plan"),
        (
            b'{"plan": {"query": {"name": "q", "operators": [{"name": "a", "kind": "x", "after": ["a"]}]}, '
            b'"replicas": []}}',
            "no deployment plan",
        ),
        (b'{"plan": {"query": {"name": "q", "operators": []}, "replicas": []}, "seed": "one"}', "seed"),
        (b'{"plan": {"query": {"name": "q", "operators": []}, "replicas": []}, "factors": [1]}', "factors"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_clear_error(
    tmp_path: Path, manifest: bytes, says: str
) -> None:
    directory = RunWriter(tmp_path, "foreign", "f1").write()
    (directory / "manifest.json").write_bytes(manifest)
    with pytest.raises(BadInput, match=says):
        read_run(RunDirectory(directory))


def test_a_verdict_that_cannot_be_used_is_none(tmp_path: Path) -> None:
    directory = RunWriter(tmp_path, "foreign", "f1").write()
    for verdict in (b"[" * 100_000, b'["valid"]', b'{"verdict": "valid", "phases": [3]}'):
        (directory / "verdict.json").write_bytes(verdict)
        assert not read_run(RunDirectory(directory)).is_usable
