"""The 802.11b radio under the agents of a simulation: routes, streams, and the record of what was sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.radio.tcp_chain import tcp_chain
from node_agent.ports.virtual.loop import VirtualLoop
from orchestrator.backends.sim.air import Air, make_air
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.model.trace import Position
from orchestrator.radio.changes import AirChanges
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.medium import Frame
from orchestrator.services.base import TrueMetric
from orchestrator.services.ground_truth import TrueLinks
from orchestrator.spec.topology import Topology
from tests.unit.specs import chain, experiment, planned, topology

POOR_M = 460.0
"""Where about a third of the full frames arrive."""


def placed(positions: dict[str, Position], **radio: Any) -> Topology:
    area = [1 + max(x for x, _ in positions.values()), 100]
    where = {"model": "static", "positions": {node: list(at) for node, at in positions.items()}}
    document = topology(nodes=list(positions), area=area, mobility=where, radio={"model": "80211b", **radio})
    return Topology.model_validate(document)


def air(positions: dict[str, Position], loop: VirtualLoop) -> Air:
    return make_air(placed(positions), loop, positions, seed=1)


@pytest.mark.parametrize(("metric", "expected"), [("etx", "b"), ("hops", "c")])
def test_etx_goes_round_a_poor_link_and_hops_take_it(metric: TrueMetric, expected: str) -> None:
    positions = {"a": (0.0, 0.0), "b": (POOR_M / 2, 0.0), "c": (POOR_M, 0.0)}
    loop = VirtualLoop()
    truth = TrueLinks(loop.now_ns, metric)
    links = air(positions, loop).move(positions, 0.0)
    assert links["a"]["b"] == 1.0 and 2.0 < links["a"]["c"] < 5.0
    truth.update(links)
    assert truth.next_hop("a", "c") == expected
    assert loop.run_until_complete(truth.cost_graph()).metric == metric
    loop.close()


def test_what_was_sent_is_told_once_beside_what_could_be_expected() -> None:
    positions = {"a": (0.0, 0.0), "b": (POOR_M, 0.0), "c": (POOR_M, 50.0)}
    loop = VirtualLoop()
    tested = air(positions, loop)
    for node in positions:
        tested.medium.attach(node, lambda frame: None, lambda frame: None)
    for _ in range(90):
        tested.medium.send(Frame("a", "b", 1500, None))
    loop.run_until_ns(2_000_000_000)
    (use,) = tested.uses()
    assert (use.source, use.destination) == ("a", "b")
    assert use.attempted > 90
    assert use.delivered / use.attempted == pytest.approx(use.expected, abs=0.1)
    assert list(tested.uses()) == []
    loop.close()


def test_nodes_that_move_apart_lose_their_link() -> None:
    near, far = {"a": (0.0, 0.0), "b": (100.0, 0.0)}, {"a": (0.0, 0.0), "b": (1000.0, 0.0)}
    loop = VirtualLoop()
    tested = air(far, loop)
    assert tested.move(near, 0.0) == {"a": {"b": 1.0}, "b": {"a": 1.0}}
    assert tested.move(far, 0.1) == {"a": {}, "b": {}}
    loop.close()


def test_what_was_foreseen_is_what_would_have_been_found() -> None:
    moments = [({"a": (0.0, 0.0), "b": (300.0 + 20.0 * step, 0.0)}, step / 10) for step in range(10)]
    alone, ahead = (air(moments[0][0], VirtualLoop()) for _ in range(2))
    ahead.foresee(moments)
    found = [alone.move(*moment) for moment in moments]
    assert [ahead.move(*moment) for moment in moments] == found
    assert len({links["a"].get("b") for links in found}) > 3


def test_what_was_foreseen_is_not_used_after_a_change_or_elsewhere() -> None:
    near, far = {"a": (0.0, 0.0), "b": (100.0, 0.0)}, {"a": (0.0, 0.0), "b": (2000.0, 0.0)}
    tested = air({"a": (0.0, 0.0), "b": (50.0, 0.0)}, VirtualLoop())
    tested.foresee([(near, 0.1), (near, 0.2), (near, 0.3)])
    assert tested.move(near, 0.1, AirChanges(silent=("b",))) == {"a": {}, "b": {}}
    assert tested.move(far, 0.2) == {"a": {}, "b": {}}
    assert tested.move(near, 0.3)["a"] == {"b": 1.0}


def simulated(directory: Path, metric: str = "etx") -> list[dict[str, Any]]:
    positions: dict[str, Position] = {name: (300.0 * index, 0.0) for index, name in enumerate("abcd")}
    found = experiment(
        topology=placed(positions).model_dump(mode="json"),
        query=chain(1),
        placement={"policy": "explicit", "nodes": {"camera": ["a"], "op1": ["b"], "screen": ["d"]}},
        routing={"protocol": "ground_truth", "metric": metric},
        duration="3s",
    )
    simulation = Simulation(planned(found), "run", directory)
    simulation.up()
    simulation.converge()
    simulation.open_sources()
    simulation.advance(3_000_000_000)
    simulation.stop()
    return [json.loads(line) for line in (directory / "radio/deliveries.jsonl").read_text().splitlines()]


def test_a_run_records_the_use_of_links_and_is_the_same_each_time(tmp_path: Path) -> None:
    records = simulated(tmp_path / "first")
    assert records == simulated(tmp_path / "second")
    assert {(record["src"], record["dst"]) for record in records} == {
        (a, b) for a in "abcd" for b in "abcd" if abs(ord(a) - ord(b)) == 1
    }
    assert {record["t_ns"] for record in records} >= {1_000_000_000, 2_000_000_000, 3_000_000_000}
    assert all(0 <= record["delivered"] <= record["attempted"] for record in records)
    assert all(record["expected"] > 0.99 and record["snr_db"] > 8 for record in records)


def test_a_stream_over_one_hop_carries_what_ns3_says() -> None:
    """5.316 Mb/s with ACKs at 11 Mb/s and long preambles."""
    radio, mac = air_settings(placed({"a": (0.0, 0.0), "b": (200.0, 0.0)}, preset="ns3-range"))
    goodput = tcp_chain(radio.radio(), mac, hops=1, seconds=2.0, seed=1, warmup=1.0)
    assert goodput == pytest.approx(5.316, rel=0.15)
