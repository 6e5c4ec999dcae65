"""Routing protocols in virtual time: they find the ways, agents have their costs from them, all counted."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.runs.backend import Status
from tests.unit.specs import chain, experiment, planned, topology

LINE = {"model": "static", "grid": {"columns": 4, "spacing": "250 m"}}
MOVING = {"model": "random_waypoint", "speed": "10 m/s"}


def simulation(directory: Path, mobility: dict[str, Any], seconds: float = 6.0, **changes: Any) -> Simulation:
    """Four nodes; in a line with a range of 300 m, so that everything takes as many hops as it can."""
    described = experiment(
        topology=topology(nodes=list("abcd"), mobility=mobility),
        query=chain(1),
        placement={"policy": "explicit", "nodes": {"camera": ["a"], "op1": ["c"], "screen": ["d"]}},
        duration=f"{seconds}s",
        **changes,
    )
    return Simulation(planned(described), "run", directory)


def played(directory: Path, mobility: dict[str, Any], **changes: Any) -> int:
    """When it had converged."""
    run = simulation(directory, mobility, **changes)
    run.up()
    assert {outcome.status for outcome in run.converge()} == {Status.OK}
    converged_ns = run.now_ns()
    run.open_sources()
    run.advance(6_000_000_000)
    assert {outcome.status for outcome in run.stop()} == {Status.OK}
    return converged_ns


def records(directory: Path, node: str, kind: str) -> list[dict[str, Any]]:
    files = sorted((directory / "nodes" / node / "segments").glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [record for record in tuple_by_tuple(lines) if record["kind"] == kind]


def segments(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*.jsonl"))}


def test_olsr_finds_the_ways_tells_their_costs_and_is_counted(tmp_path: Path) -> None:
    converged_ns = played(tmp_path, LINE)
    assert 1e9 < converged_ns < 20e9
    assert len(records(tmp_path, "d", "tuple_delivered")) > 40
    costs = records(tmp_path, "a", "link_cost")
    assert {(cost["source"], cost["metric"]) for cost in costs} == {("olsr", "etx")}
    assert costs[-1]["cost"] >= 2.0
    counted = records(tmp_path, "b", "routing_overhead")
    assert {count["message"] for count in counted} >= {"LQ_HELLO", "LQ_TC", "packet"}
    topology_messages = [count for count in counted if count["message"] == "LQ_TC"]
    assert topology_messages[-1]["t_ns"] == converged_ns + 6_000_000_000  # when it stopped
    assert topology_messages[-1]["forwarded_bytes"] > topology_messages[0]["forwarded_bytes"]


@pytest.mark.parametrize("authentication", [False, True])
@pytest.mark.parametrize("protocol", ["olsr", "aodv"])
def test_same_seed_same_bytes_and_another_seed_another_run(
    tmp_path: Path, protocol: str, authentication: bool
) -> None:
    routing = {"protocol": protocol, "authentication": authentication}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        played(tmp_path / name, MOVING, routing=routing, seed=seed)
    first, again, other = (segments(tmp_path / name) for name in ("first", "again", "other"))
    assert first == again
    assert first != other


@pytest.mark.parametrize("protocol", ["olsr", "aodv"])
def test_with_authentication_all_is_as_before_and_seals_are_counted(tmp_path: Path, protocol: str) -> None:
    played(tmp_path, LINE, routing={"protocol": protocol, "authentication": True})
    assert len(records(tmp_path, "d", "tuple_delivered")) > 40
    counted = records(tmp_path, "a", "routing_overhead")
    assert any(count["message"] == "SEAL" and count["sent_bytes"] for count in counted)
    assert [node for node in "abcd" if records(tmp_path, node, "refused")] == []


def test_aodv_looks_for_ways_when_they_are_needed(tmp_path: Path) -> None:
    played(tmp_path, LINE, routing="aodv")
    assert len(records(tmp_path, "d", "tuple_delivered")) > 40
    costs = records(tmp_path, "a", "link_cost")
    assert (costs[-1]["source"], costs[-1]["metric"], costs[-1]["cost"]) == ("aodv", "hops", 2.0)
    assert any(c["message"] == "RREQ" and c["sent"] for c in records(tmp_path, "a", "routing_overhead"))


@pytest.mark.parametrize(("mode", "chosen"), [("link_state", "op1/0"), ("exchange", "op1/1")])
def test_with_aodv_the_cheapest_way_is_known_to_who_is_told_of_it(
    tmp_path: Path, mode: str, chosen: str
) -> None:
    """In a line of five: from b the nearest replica is on a, the one on the way to the sink on d."""
    nodes = list("abcde")
    described = experiment(
        topology=topology(
            nodes=nodes, mobility={"model": "static", "grid": {"columns": 5, "spacing": "250 m"}}
        ),
        query=chain(1),
        replicas=2,
        placement={
            "policy": "explicit",
            "nodes": {"camera": ["b"], "op1": ["a", "d"], "screen": ["e"]},
        },
        duration="20s",
        routing="aodv",
        switching={"mode": mode},
    )
    run = Simulation(planned(described), "run", tmp_path)
    run.up()
    assert {outcome.status for outcome in run.converge()} == {Status.OK}
    run.open_sources()
    run.advance(20_000_000_000)
    assert {outcome.status for outcome in run.stop()} == {Status.OK}
    decision = records(tmp_path, "b", "route_decision")[-1]
    assert decision["new"] == chosen
    if mode == "exchange":
        assert decision["source"] == "aodv, exchanged"
        assert [(c["link"], c["path"]) for c in decision["candidates"]] == [(1.0, 5.0), (2.0, 3.0)]
        assert len(records(tmp_path, "e", "tuple_delivered")) > 150
    told = [count for node in nodes for count in records(tmp_path, node, "routing_overhead")]
    assert any(count["protocol"] == "exchange" for count in told) is (mode == "exchange")


def test_ground_truth_costs_nothing_on_the_air(tmp_path: Path) -> None:
    assert played(tmp_path, LINE, routing="ground_truth") < 1e9
    assert {cost["source"] for cost in records(tmp_path, "a", "link_cost")} == {"ground_truth"}
    assert records(tmp_path, "b", "routing_overhead") == []


def test_nodes_that_are_not_told_enough_in_time_are_named(tmp_path: Path) -> None:
    run = simulation(tmp_path, LINE, timeouts={"converge": "1s"})
    run.up()
    outcomes = run.converge()
    run.stop()
    assert [outcome.status for outcome in outcomes] == [Status.FAILED] * 4
    assert outcomes[0].reason == "routing knows no way to 3 of 3 nodes (b, c, d)"


def test_the_query_sees_the_same_movements_whatever_routing_takes(tmp_path: Path) -> None:
    """Nodes begin to move when the query does."""
    starts = {name: played(tmp_path / name, MOVING, routing=name) for name in ("olsr", "ground_truth")}
    assert starts["olsr"] > starts["ground_truth"]

    def path(name: str) -> list[tuple[float, float]]:
        lines = (tmp_path / name / "radio/positions.jsonl").read_text().splitlines()
        moved = [json.loads(line) for line in lines if json.loads(line)["node"] == "a"]
        return [(line["x"], line["y"]) for line in moved if line["t_ns"] >= starts[name]]

    assert path("olsr")[0] != path("olsr")[-1]
    assert path("olsr")[:6] == path("ground_truth")[:6]


def test_aodv_in_virtual_time_is_told_of_lost_frames_and_greets_nobody(tmp_path: Path) -> None:
    for name, routing in (("unsaid", "aodv"), ("hello", {"protocol": "aodv", "detection": "hello"})):
        played(tmp_path / name, LINE, routing=routing)
    greeted = {
        name: any(
            c["message"] == "HELLO" and c["sent"] for c in records(tmp_path / name, "b", "routing_overhead")
        )
        for name in ("unsaid", "hello")
    }
    assert greeted == {"unsaid": False, "hello": True}


def test_without_routing_a_node_reaches_its_neighbours_only(tmp_path: Path) -> None:
    """The camera is two hops from the operator, which is next to the screen."""
    played(tmp_path, LINE, routing="none")
    assert records(tmp_path, "d", "tuple_delivered") == []
    assert {record["cost"] for record in records(tmp_path, "a", "link_cost")} <= {None}


def test_without_routing_a_stream_goes_from_neighbour_to_neighbour(tmp_path: Path) -> None:
    nodes = {"camera": ["b"], "op1": ["c", "a"], "screen": ["d"]}
    placed = {"placement": {"policy": "explicit", "nodes": nodes}, "replicas": 2}
    described = experiment(
        topology=topology(nodes=list("abcd"), mobility=LINE),
        query=chain(1),
        duration="6s",
        routing="none",
        **placed,
    )
    run = Simulation(planned(described), "run", tmp_path)
    run.up()
    run.converge()
    run.open_sources()
    run.advance(6_000_000_000)
    run.stop()
    assert len(records(tmp_path, "d", "tuple_delivered")) > 40
    (decision, *_) = records(tmp_path, "b", "route_decision")
    by_replica = {each["to"]: each.get("path") for each in decision["candidates"]}
    assert decision["new"] == "op1/0"
    assert by_replica["op1/1"] is None, "a is a neighbour, but has no way to the screen"


def delivered_s(
    directory: Path, quality: str, mobility: dict[str, Any], nodes: list[str], **changes: Any
) -> list[float]:
    """When tuples arrived at y, which a's stream comes to over z."""
    described = experiment(
        topology=topology(nodes=nodes, mobility=mobility, radio={"model": "80211b"}),
        query={**chain(1), "rate": "30 fps", "payload": "10 kB"},
        placement={"policy": "explicit", "nodes": {"camera": ["a"], "op1": ["z"], "screen": ["y"]}},
        routing={"protocol": "olsr", "quality": quality},
        duration="25s",
        **changes,
    )
    run = Simulation(planned(described), "run", directory)
    run.up()
    run.converge()
    run.open_sources()
    run.advance(25_000_000_000)
    run.stop()
    return [record["t_ns"] / 1e9 for record in records(directory, "y", "tuple_delivered")]


def longest_outage_s(times: list[float]) -> float:
    return max(after - before for before, after in pairwise(times))


def test_quality_fast_avoids_links_that_carry_hellos_but_no_data(tmp_path: Path) -> None:
    """At 475 m three of four HELLOs arrive, and one of twelve full frames; a relay stands between."""
    at = {"a": [0, 0], "z": [475, 0], "relay": [240, 50], "y": [490, 0]}
    static = {"model": "static", "positions": at}
    fast, slow = (len(delivered_s(tmp_path / name, name, static, list(at))) for name in ("fast", "etx_ff"))
    assert fast > 1.5 * slow


def test_quality_fast_moves_routes_before_a_relay_is_gone(tmp_path: Path) -> None:
    """Movements as BonnMotion writes them: the nearer of two relays leaves at 20 m/s."""
    leaving = ["0 0 600", "0 600 600", "0 300 600 3 300 600 30 300 60", "0 300 1020", "0 620 600"]
    (tmp_path / "leaving.movements").write_text("\n".join(leaving) + "\n")
    mobility = {"model": "trace", "file": str(tmp_path / "leaving.movements")}
    times = delivered_s(tmp_path / "run", "fast", mobility, ["a", "z", "near", "far", "y"])
    assert longest_outage_s(times) < 0.5


def test_quality_fast_leaves_a_relay_that_fell_silent_within_a_second(tmp_path: Path) -> None:
    """The radio gives up frames to it long before its HELLOs are overdue."""
    at = {"a": [0, 300], "z": [600, 300], "near": [300, 300], "far": [300, 0], "y": [620, 300]}
    static = {"model": "static", "positions": at}
    gone = [{"at": "10s", "silence": {"node": "near"}}]
    fast, slow = (
        longest_outage_s(delivered_s(tmp_path / name, name, static, list(at), faults=gone))
        for name in ("fast", "etx_ff")
    )
    assert fast < 1.5 < 2.5 < slow
