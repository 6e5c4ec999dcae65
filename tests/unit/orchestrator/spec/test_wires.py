"""``wires`` in a topology: what they mean, what is said about mistakes, and who cannot have any."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.planning.distances import network_at
from orchestrator.planning.load import load_topology
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.topology import Topology

BACKBONE = {"between": ["b1", "b2", "b3"], "rate": "10 Mb/s", "latency": "2 ms"}
DISC = {"model": "disc", "range": "100 m", "bandwidth": "11 Mb/s", "latency": "1 ms"}
FLOWS = [{"from": "car", "to": "b3", "rate": "8 kb/s"}]


def document(*wires: Any, **changes: Any) -> dict[str, Any]:
    places = {"b1": [0, 0], "b2": ["500 m", 0], "b3": ["1000 m", 0], "car": ["10 m", 0]}
    whole = {
        "name": "town",
        "nodes": list(places),
        "area": "1000 m x 100 m",
        "mobility": {"model": "static", "positions": places},
        "radio": DISC,
        "wires": list(wires),
    }
    return whole | changes


def test_each_two_nodes_of_an_entry_have_a_cable_that_is_always_up() -> None:
    found = Topology.model_validate(document(BACKBONE))
    links = found.wire_links()
    assert [(link.a, link.b) for link in links] == [("b1", "b2"), ("b1", "b3"), ("b2", "b3")]
    assert {(link.rate, link.latency, link.is_up(1e6)) for link in links} == {(10e6, 0.002, True)}
    assert Topology.model_validate(found.model_dump(mode="json")) == found
    network = network_at(found, found.static_positions())
    assert set(network["b1"]) >= {"b2", "b3", "car"} and "b2" not in network["car"]


@pytest.mark.parametrize(
    ("wires", "message"),
    [
        ([{"between": ["b1"]}], "is not a list of two nodes or more"),
        ([{"between": ["b1", "b9"]}], 'there is no node "b9"'),
        ([{"between": ["b1", "b2", "b1"]}], "b1 is listed twice"),
        ([BACKBONE, {"between": ["b3", "b1"]}], "b1 and b3 have a cable already, the one at wires[0]"),
        ([{"between": ["b1", "b2"], "rate": "20 Gb/s"}], "20 Gb/s"),
        ([{"between": ["b1", "b2"], "rate": "1 b/s"}], "1 b/s"),
        ([{"between": ["b1", "b2"], "latency": "1 min"}], "1 min"),
        ([{"between": ["b1", "b2"], "speed": 3}], "speed"),
        ({"between": ["b1", "b2"]}, "wires"),
    ],
)
def test_a_mistake_is_said_once_with_its_line(tmp_path: Path, wires: Any, message: str) -> None:
    file = tmp_path / "town.yaml"
    file.write_text(to_yaml(document() | {"wires": wires}))
    with pytest.raises(BadSpec) as refused:
        load_topology(file)
    (problem,) = refused.value.problems
    text = str(refused.value)
    assert message in text and problem.line is not None
    assert problem.line >= file.read_text().splitlines().index("wires:") + 1


def test_a_mesh_of_very_many_nodes_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "town.yaml"
    names = [f"n{number}" for number in range(3000)]
    grid = {"model": "static", "grid": {"columns": 60, "spacing": "1 m"}}
    file.write_text(to_yaml(document({"between": names}, nodes=names, mobility=grid)))
    with pytest.raises(BadSpec, match="4498500 cables: at most 10000"):
        load_topology(file)


def test_contacts_have_no_wires_beside_them() -> None:
    contacts = {"model": "contacts", "rate": "1 Mb/s", "links": [{"between": ["b1", "car"], "always": True}]}
    with pytest.raises(ValueError, match="a link that is always up is a wire"):
        Topology.model_validate(document(BACKBONE, radio=contacts))


def findings(topology: dict[str, Any], **changes: Any) -> list[str]:
    common = {"name": "x", "duration": "60s", "topology": topology, "routing": "ground_truth", "flows": FLOWS}
    found = Experiment.model_validate(common | {"backend": "sim"} | changes)
    return [f"{'.'.join(map(str, finding.at))}: {finding.message}" for finding in plan_run(found).findings]


def test_cables_connect_nodes_that_hear_each_other_not() -> None:
    assert findings(document(BACKBONE)) == []
    (problem,) = findings(document({"between": ["b1", "b2"]}))
    assert "hops of 100 m do not connect them" in problem


@pytest.mark.parametrize("backend", ["ssh", "core"])
def test_who_cannot_have_wires_says_so(backend: str) -> None:
    said = [
        text for text in findings(document(BACKBONE), backend=backend) if text.startswith("topology.wires")
    ]
    assert len(said) == 1


def test_a_cable_cannot_be_weakened() -> None:
    fault = {"degrade": {"link": ["b1", "b2"], "by": "3 dB"}, "at": "1s", "for": "1s"}
    radio = {"model": "80211b"}
    (problem,) = findings(document(BACKBONE, radio=radio), faults=[fault])
    assert "have a wire, which has no signal" in problem
