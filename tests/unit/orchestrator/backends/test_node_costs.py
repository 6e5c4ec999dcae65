"""What nodes cost and carry, end to end in virtual time: dear ones are avoided, cores compute at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.runs.backend import Status
from tests.unit.specs import chain, experiment, planned, topology

SQUARE = {"camera": [0, 200], "upper": [200, 400], "lower": [200, 0], "screen": [400, 200]}
"""The upper and the lower node are equally far from camera and screen, which do not hear each other."""


def played(
    directory: Path, query: dict[str, Any], nodes: dict[str, list[str]], routing: str = "olsr", **field: Any
) -> None:
    described = experiment(
        topology=topology(nodes=list(SQUARE), mobility={"model": "static", "positions": SQUARE}, **field),
        query=query,
        replicas={name: len(hosts) for name, hosts in nodes.items() if name.startswith("op")},
        placement={"policy": "explicit", "nodes": nodes},
        duration="6s",
        routing={"protocol": routing, "metric": "hops"},
    )
    run = Simulation(planned(described), "run", directory)
    run.up()
    assert {outcome.status for outcome in run.converge()} == {Status.OK}
    run.advance(4_000_000_000)  # until routing knows the ways beyond the neighbours, too
    run.open_sources()
    run.advance(6_000_000_000)
    assert {outcome.status for outcome in run.stop()} == {Status.OK}


def processed(directory: Path, node: str, kind: str = "tuple_processed") -> int:
    files = sorted((directory / "nodes" / node / "segments").glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sum(record["kind"] == kind for record in tuple_by_tuple(lines))


@pytest.mark.parametrize("routing", ["olsr", "ground_truth"])
@pytest.mark.parametrize(
    ("dear", "cheap", "costs"),
    [
        ("upper", "lower", {"upper": 1.5}),
        ("lower", "upper", {"lower": {"cpu": 1, "battery": 0.5}, "upper": {"cpu": 0.1}}),
    ],
)
def test_a_way_through_a_dear_node_is_avoided(
    tmp_path: Path, routing: str, dear: str, cheap: str, costs: dict[str, Any]
) -> None:
    nodes = {"camera": ["camera"], "op1": ["upper", "lower"], "screen": ["screen"]}
    played(tmp_path, chain(1), nodes, routing, costs=costs)
    assert processed(tmp_path, dear) == 0
    assert processed(tmp_path, cheap) > 40
    assert processed(tmp_path, "screen", "tuple_delivered") > 40


@pytest.mark.parametrize(("capacity", "least", "most"), [(1, 20, 35), ({"upper": 2}, 50, 60)])
def test_operators_on_one_node_compute_at_once_if_it_has_the_cores(
    tmp_path: Path, capacity: int | dict[str, int], least: int, most: int
) -> None:
    """Two operators of 90 ms each, at ten tuples a second: one core carries little more than half of it."""
    query = chain(2) | {"cpu": "90 ms", "payload": "200 B"}
    nodes = {"camera": ["camera"], "detect": ["upper"], "recognise": ["upper"], "screen": ["screen"]}
    played(tmp_path, query, nodes, capacity=capacity)
    assert least < processed(tmp_path, "screen", "tuple_delivered") < most
