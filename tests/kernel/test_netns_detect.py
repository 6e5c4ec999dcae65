"""Events detected over links that really go up and down: the same detections as in virtual time."""

from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect, read_records
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import assert_nothing_is_left, root_of
from tests.unit.rove_process import RUN_ID, rove, run_under_test

NODES = ("base", "ferry", "north")
FILE = """
name: line
topology:
  name: ferry
  nodes: [base, ferry, north]
  radio:
    model: contacts
    rate: 256 kb/s
    latency: 20 ms
    links:
      - {between: [ferry, base], periodic: {up: 4s, down: 4s}}
      - {between: [north, ferry], periodic: {up: 4s, down: 4s, phase: 3s}}
routing: none
backend: BACKEND
detect:
  events:
    smoke: {node: north, times: [1s, 2s, 3s, 4s, 5s, 6s]}
    heat: {node: ferry, times: [2.5s, 5.5s]}
    drill: {node: base, times: [6.4s]}
  patterns:
    fire: {pattern: "and(smoke, heat, !drill; 2s)", sink: base, tolerance: 10 min}
warmup: 0s
duration: 20s
"""
FOUND = {
    ("smoke#0", "heat#0"),
    ("smoke#1", "heat#0"),
    ("heat#0", "smoke#2"),
    ("heat#0", "smoke#3"),
    ("smoke#3", "heat#1"),  # the drill comes 2.4 s after this smoke, and too early for those that follow
}


def detected(run: RunDirectory, file: Path, backend: str) -> list[tuple[str, ...]]:
    file.write_text(FILE.replace("BACKEND", backend))
    # A busy machine may make the run invalid; what it detects must be the same.
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=100)
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    assert all(inspect(run.segments(node)).complete for node in NODES)
    records = list(read_records(run.segments("base")))
    return [tuple(record["constituents"]) for record in records if record["kind"] == "event_detected"]


@pytest.mark.timeout(120)
def test_namespaces_detect_what_virtual_time_does(tmp_path: Path, run: RunDirectory) -> None:
    with run_under_test(tmp_path / "virtual") as virtual:
        in_virtual_time = detected(virtual, tmp_path / "virtual.yaml", "sim")
    in_namespaces = detected(run, tmp_path / "namespaces.yaml", "netns")
    assert sorted(in_namespaces) == sorted(in_virtual_time) == sorted(FOUND)
    assert_nothing_is_left(run)
