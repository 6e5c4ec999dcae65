"""The same seed means the same movements in the same measured window, in namespaces as in virtual time."""

import json
from pathlib import Path

import pytest

from orchestrator.backends.readiness import SETTLED_S
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.load import load_experiment
from orchestrator.runs.files import parse_lines
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import experiment_file, phases, rove

WARMUP_S, DURATION_S = 2, 4
TOPOLOGY = {
    "name": "moving",
    "nodes": 5,
    "area": "300 m x 300 m",
    "mobility": {"model": "random_waypoint", "speed": "10 m/s", "speed_spread": "1 m/s"},
    "radio": {"model": "80211b", "tx_power": "-10 dBm"},
}


@pytest.mark.parametrize("backend", ["sim", "netns"])
@pytest.mark.timeout(120)
def test_nodes_wait_for_the_query_and_then_move_by_their_seed(
    tmp_path: Path, run: RunDirectory, backend: str
) -> None:
    file = experiment_file(
        tmp_path,
        without=("topology", "placement"),
        topology=TOPOLOGY,
        backend=backend,
        routing={"protocol": "olsr", "metric": "hops"},
        converge={"settled": "20%"},
        warmup=f"{WARMUP_S}s",
        duration=f"{DURATION_S}s",
        seed=7,
    )
    ended = rove(
        run.path.parent.parent, "run", str(file), "--run-id", run.id, "--no-analyze", "--json", timeout=100
    )
    assert ended.returncode in (0, 3), ended.stderr
    assert "measure" in phases(run)
    experiment = load_experiment(file)
    trace = generate_trace(experiment.topology, experiment.seed, WARMUP_S + DURATION_S)
    manifest = json.loads(run.manifest.read_text())
    assert SETTLED_S <= manifest["settled_s"] < 40, "hops are the same from the beginning"
    began = manifest["moving_from_ns"]
    assert manifest["measure_from_ns"] - began == pytest.approx(WARMUP_S * 1e9, abs=0.5e9)
    positions = list(parse_lines((run.path / "radio" / "positions.jsonl").read_bytes()))
    standing = moving = 0
    for record in positions:
        since_s = (record["t_ns"] - began) / 1e9
        x, y = trace.position(record["node"], max(0.0, since_s))
        assert (record["x"], record["y"]) == pytest.approx((x, y), abs=2e-3), since_s
        standing += since_s < 0
        moving += since_s > 1
    assert standing >= 5 and moving >= 15
