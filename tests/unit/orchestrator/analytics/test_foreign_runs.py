"""Somebody else's run directory can be looked at without running the code that lies in it."""

from pathlib import Path

import pytest

from orchestrator.analytics.core.radio_section import facts
from orchestrator.analytics.report import views_of
from orchestrator.errors import BadInput
from orchestrator.results.inputs import read_run
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import RunWriter, known_run

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
