"""From a topology to a trace: every model, by the seed alone, within its area and as its file says."""

from itertools import pairwise
from math import hypot
from pathlib import Path
from typing import Any

import pytest

from orchestrator.mobility.generate import generate_trace
from orchestrator.mobility.group import Group
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.spec.topology import Topology
from tests.unit.specs import topology

UNTIL = 60.0
MODELS: dict[str, dict[str, Any]] = {
    "waypoint": {"model": "random_waypoint", "speed": 5, "speed_spread": 1, "pause": 2, "pause_spread": 1},
    "steady": {"model": "random_waypoint", "speed": 5, "speed_spread": 1, "steady_state": True},
    "walk by time": {"model": "random_walk", "speed": 5, "speed_spread": 1, "time": "10 s"},
    "walk by distance": {"model": "random_walk", "speed": 5, "speed_spread": 1, "distance": "50 m"},
    "gauss-markov": {"model": "gauss_markov", "speed": 5, "speed_deviation": 1, "max_speed": 6},
    "group": {"model": "group", "groups": 3, "radius": "40 m", "speed": 5, "member_speed": 1},
    "scatter": {"model": "static", "scatter": True},
}


def build(mobility: dict[str, Any], nodes: Any = 8) -> Topology:
    return Topology.model_validate(topology(nodes=nodes, area="600 m x 300 m", mobility=mobility))


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_alone_decides(name: str) -> None:
    first = generate_trace(build(MODELS[name]), 1, UNTIL)
    assert generate_trace(build(MODELS[name]), 1, UNTIL).paths == first.paths
    assert generate_trace(build(MODELS[name]), 2, UNTIL).paths != first.paths
    assert list(first.paths) == [f"n0{number}" for number in range(1, 9)]


@pytest.mark.parametrize("name", MODELS)
def test_nodes_stay_inside_and_below_their_speed(name: str) -> None:
    for path in generate_trace(build(MODELS[name]), 1, UNTIL).paths.values():
        assert all(0 <= x <= 600 and 0 <= y <= 300 for _, x, y in path)
        for a, b in pairwise(path):
            assert hypot(b.x - a.x, b.y - a.y) <= 6.0 * (b.t - a.t) + 1e-6


@pytest.mark.parametrize("name", [name for name in MODELS if name != "group"])
def test_a_node_more_leaves_the_others_paths_alone(name: str) -> None:
    few, more = (generate_trace(build(MODELS[name], nodes), 1, UNTIL).paths for nodes in (8, 9))
    assert {node: more[node] for node in few} == few


def test_what_a_walk_says_of_time_and_distance_is_meant() -> None:
    by_time, by_distance = (
        generate_trace(build({"model": "random_walk", "speed": 2, **turn}, 1), 1, 9.0).paths["n01"]
        for turn in ({"time": 3}, {"distance": 4})
    )
    assert {w.t for w in by_time} >= {0.0, 3.0, 6.0, 9.0}
    assert {round(w.t, 6) for w in by_distance} >= {0.0, 2.0, 4.0, 6.0, 8.0}


def test_angles_are_in_degrees() -> None:
    mobility = {"model": "gauss_markov", "speed": 1, "direction": "90 deg", "direction_deviation": 0}
    (path,) = generate_trace(build(mobility, 1), 1, 1.0).paths.values()
    assert (path[1].x, abs(path[1].y - path[0].y)) == pytest.approx((path[0].x, 1.0))


@pytest.mark.parametrize(
    ("groups", "members"),
    [
        (3, (("a", "b"), ("c", "d"), ("e", "f", "g"))),
        (7, tuple((node,) for node in "abcdefg")),
        ([["g", "a"], ["b", "c", "d", "e", "f"]], (("g", "a"), ("b", "c", "d", "e", "f"))),
    ],
)
def test_groups(groups: Any, members: tuple[tuple[str, ...], ...]) -> None:
    nodes = tuple("abcdefg")
    found = build({**MODELS["group"], "groups": groups}, list(nodes))
    assert isinstance(found.mobility, Group)
    assert found.mobility.members(nodes) == members
    trace = generate_trace(found, 1, UNTIL)
    assert tuple(trace.paths) == nodes
    for leader, *others in members:
        for t in (0.0, 30.0, 60.0):
            x, y = trace.position(leader, t)
            assert all(hypot(a - x, b - y) <= 40.0 + 1e-6 for a, b in (trace.position(o, t) for o in others))


def test_a_recorded_trace_is_the_same_for_every_seed(tmp_path: Path) -> None:
    file = tmp_path / "moves.tcl"
    file.write_text(
        "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 9\n$node_(1) set Y_ 9\n"
        '$ns_ at 1.0 "$node_(0) setdest 10 0 5"\n'
    )
    found = build({"model": "trace", "file": str(file)}, ["a", "b"])
    expected = {
        "a": (Waypoint(0, 0, 0), Waypoint(1, 0, 0), Waypoint(3, 10, 0)),
        "b": (Waypoint(0, 9, 9),),
    }
    assert generate_trace(found, 1, UNTIL).paths == generate_trace(found, 2, UNTIL).paths == expected


def test_a_trace_that_changes_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "moves.movements"
    for x in (1.0, 2.0):
        file.write_text(f"0 {x} 0\n")
        found = build({"model": "trace", "file": str(file)}, ["a"])
        assert generate_trace(found, 1, UNTIL).position("a", 0) == (x, 0)


def test_a_trace_cut_short_is_the_same_motion() -> None:
    whole = Trace({"a": (Waypoint(0, 0, 0), Waypoint(4, 8, 0), Waypoint(6, 8, 0)), "b": (Waypoint(0, 1, 1),)})
    assert whole.until(3).paths == {"a": (Waypoint(0, 0, 0), Waypoint(3, 6, 0)), "b": (Waypoint(0, 1, 1),)}
    assert whole.until(4).paths["a"] == (Waypoint(0, 0, 0), Waypoint(4, 8, 0))
    assert whole.until(9).paths == whole.paths


@pytest.mark.parametrize(
    ("area", "mobility"),
    [
        ("0.4 m x 1 cm", {"model": "random_waypoint", "speed": 5}),
        ("100 m x 1 cm", {"model": "random_walk", "speed": 5, "time": 10}),
        ("100 m x 1 cm", {"model": "gauss_markov", "speed": 5}),
        ("100 m x 100 m", {"model": "group", "groups": 1, "speed": 5, "radius": 49.9}),
        ("100 m x 100 m", {"model": "group", "groups": 1, "speed": 5, "radius": 1, "member_speed": 500}),
    ],
)
def test_nodes_that_would_be_across_in_no_time_are_refused(area: str, mobility: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"would be across in less than 0\.1 s"):
        Topology.model_validate(topology(nodes=2, area=area, mobility=mobility))


def test_a_narrow_strip_is_long_enough_for_random_waypoint() -> None:
    strip = topology(nodes=2, area="100 m x 1 cm", mobility={"model": "random_waypoint", "speed": 5})
    assert len(generate_trace(Topology.model_validate(strip), 1, 60.0).paths) == 2
