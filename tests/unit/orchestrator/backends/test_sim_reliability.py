"""Reliability as an experiment names it: nodes that move, a routing protocol, and nothing lost but time."""

import json
from collections import Counter
from pathlib import Path

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.runs.backend import Status
from tests.unit.specs import chain, experiment, planned, topology

NODES = {"camera": ["n0"], "detect": ["n1", "n2"], "recognise": ["n3", "n4"], "screen": ["n5"]}
SECONDS = 40


def positions(directory: Path, level: str) -> tuple[Counter[int], Counter[int]]:
    """How often each position was emitted and delivered."""
    mobility = {"model": "random_waypoint", "speed": "15 m/s"}
    nodes = [f"n{i}" for i in range(10)]
    described = experiment(
        topology=topology(nodes=nodes, area="700 m x 700 m", mobility=mobility),
        query=chain(2) | {"reliability": level},
        placement={"policy": "explicit", "nodes": NODES},
        duration=f"{SECONDS}s",
    )
    run = Simulation(planned(described), "run", directory)
    run.up()
    run.converge()
    run.open_sources()
    run.advance(SECONDS * 1_000_000_000)
    assert {outcome.status for outcome in run.stop()} == {Status.OK}
    found: dict[str, Counter[int]] = {"tuple_emitted": Counter(), "tuple_delivered": Counter()}
    for path in directory.rglob("segments/*.jsonl"):
        for record in tuple_by_tuple(map(json.loads, path.read_text().splitlines())):
            if record["kind"] in found:
                found[record["kind"]][record["tau"]] += 1
    return found["tuple_emitted"], found["tuple_delivered"]


@pytest.mark.parametrize("level", ["at_least_once", "exactly_once"])
def test_moving_nodes_lose_nothing(tmp_path: Path, level: str) -> None:
    emitted, delivered = positions(tmp_path, level)
    late = [tau for tau in emitted if tau not in delivered]
    assert len(emitted) == SECONDS * 10 + 1
    assert late == list(range(len(emitted) - len(late) + 1, len(emitted) + 1)), (
        "only what is under way is missing"
    )
    assert len(late) < 0.2 * len(emitted), "the run ends with an outage of some seconds"
    if level == "exactly_once":
        assert set(delivered.values()) == {1}


def test_best_effort_loses_there(tmp_path: Path) -> None:
    emitted, delivered = positions(tmp_path, "best_effort")
    assert [tau for tau in emitted if tau not in delivered and tau < max(delivered)]
