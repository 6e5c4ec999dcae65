"""A short run in virtual time with faults and two replicas of each operator, made once for all tests."""

from pathlib import Path

import pytest

from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import RUN_ID, rove

EXPERIMENT = """\
name: watched
topology:
  name: eight
  nodes: 8
  area: 400 m x 400 m
  mobility: {model: random_waypoint, speed: 5 m/s}
  radio: {model: disc, range: 260 m, bandwidth: 11 Mb/s, latency: 1 ms}
backend: sim
query:
  operators:
    camera: {kind: synthetic_source, rate: 20 fps}
    detect: {kind: work, after: camera, cpu: 5 ms}
    recognise: {kind: work, after: detect, cpu: 5 ms}
    screen: {kind: sink, after: recognise}
replicas: 2
placement:
  policy: explicit
  nodes: {camera: [n01], detect: [n02, n03], recognise: [n04, n05], screen: [n06]}
switching: {period: 1s}
duration: 30s
warmup: 5s
seed: 3
faults:
  - {at: 5s, for: 8s, crash: {node: n02}}
  - {at: 8s, for: 4s, silence: {node: n08}}
  - {at: 15s, for: 6s, crash: {node: n03}}
"""


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    root = tmp_path_factory.mktemp("watched")
    file = root / "watched.yaml"
    file.write_text(EXPERIMENT)
    ended = rove(root / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode == 0, ended.stderr
    return RunDirectory(root / "runs" / "watched" / RUN_ID)


@pytest.fixture
def copied(watched: RunDirectory, tmp_path: Path) -> RunDirectory:
    """The same run in a directory that a test may spoil."""
    import shutil

    place = tmp_path / "runs" / "watched" / RUN_ID
    shutil.copytree(watched.path, place)
    return RunDirectory(place)
