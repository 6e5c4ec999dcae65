"""The simulation behind the figures of migration, on vehicles without SUMO."""

import random
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from benchmarks.migration.cells import Cells, Size
from benchmarks.migration.figure_files import figure_412
from benchmarks.migration.mobiles import changing
from benchmarks.migration.moving import Greedy, Planned, Planning
from benchmarks.migration.scenes import Accident, Generic, Ground
from benchmarks.migration.simulation import Measured, Mover, Simulation
from benchmarks.migration.topologies import HOP_S, flat, quad
from benchmarks.migration.traffic import AREA, Traffic, shortest_way
from node_agent.migration.plan import even_steps

pytestmark = [pytest.mark.unit, pytest.mark.timeout(120)]

PLANNING = Planning(horizon=80)


def traffic(seconds: int = 200) -> Traffic:
    """Vehicles that cross the area from west to east, at 15 m/s, on streets of their own."""
    made = random.Random(1)
    places = {}
    for n in range(8):
        x, y = made.uniform(200, 2500), made.uniform(100, AREA[1] - 100)
        places[f"car{n}"] = [(x + 15.0 * t, y) for t in range(seconds + 1)]
    return Traffic(places)


def ground(seconds: int = 120) -> Ground:
    return Ground(traffic(60 + seconds), 60, seconds)


def test_trees_have_the_brokers_of_the_thesis() -> None:
    a, b = quad(), flat()
    assert len(a.network.brokers) == 21 and len(a.leaves.boxes) == 16 and len(b.leaves.boxes) == 40
    assert a.network.between("l00", "l05") == 2 * HOP_S, "below the same broker"
    assert a.network.between("l00", "l02") == 4 * HOP_S and a.network.between("l00", "cloud") == 2 * HOP_S
    assert b.network.between("l00", "l39") == 2 * HOP_S
    assert set(b.near("l00", 0.0)) == {"cloud", "l00", "l01", "l08", "l09"}
    assert b.near("cloud", 0.0) == b.network.brokers == b.near("l00", inf)


def played(query: Generic | Accident, way: Planning | int | None, given: Ground, seed: int = 1) -> Measured:
    simulation = Simulation(query.scene(given, quad(), seed))
    if way is None:
        return simulation.play(Mover(simulation))
    return simulation.play(Greedy(simulation, way) if isinstance(way, int) else Planned(simulation, way))


def test_a_static_placement_costs_what_its_streams_cost() -> None:
    given = ground(1)
    query = Generic(event=200.0)
    scene = query.scene(given, quad(), 3)
    net, hosts = scene.tree.network, scene.hosts
    at = {each.name: each.ends(0)[0][0] for each in scene.mobiles()}
    cost = 200.0 * net.between(at["s1"], hosts["D1"]) + 100.0 * net.between(at["s2"], hosts["D2"])
    cost += 10.0 * (net.between(hosts["D1"], hosts["F"]) + net.between(hosts["D2"], hosts["F"]))
    cost += 1.0 * net.between(hosts["F"], at["u"])
    found = played(query, None, given, 3)
    assert found.cost == pytest.approx(cost) and found.migrations == 0 and found.path_seconds == 2


def test_without_state_plans_cost_about_what_greedy_does() -> None:
    given = ground()
    query = Generic(capture="exact")
    static, greedy, planned = (played(query, way, given) for way in (None, 5, PLANNING))
    assert planned.cost < 0.2 * static.cost and planned.cost < 1.1 * greedy.cost
    assert planned.copying == 0 and planned.late_s == 0 and planned.messages > 0


def test_with_state_plans_move_less_and_cost_less() -> None:
    given = ground()
    query = Generic(event=50.0, states={"D1": 40_000.0}, capture="exact")
    greedy, planned = played(query, 5, given), played(query, PLANNING, given)
    assert planned.cost < greedy.cost and planned.copying < greedy.copying
    assert greedy.stopped_s > 0 and planned.stopped_s == 0, "the old host goes on meanwhile"


def test_copies_take_as_long_as_the_bandwidth_says() -> None:
    given = ground()
    query = Generic(event=100_000.0, states={"D1": 5e6}, capture="exact")
    greedy = played(query, 5, given)
    assert greedy.stopped_s / greedy.migrations > 0.5
    planned = played(query, PLANNING, given)
    assert planned.migrations > 0 and planned.copying >= 5e6 * HOP_S


def test_paths_are_counted_that_take_too_long() -> None:
    given = ground()
    loose = played(Generic(states={"D1": 60_000.0}, limit=0.03, know=False), PLANNING, given)
    tight = played(Generic(states={"D1": 60_000.0}, limit=0.03), PLANNING, given)
    assert tight.too_late < loose.too_late < loose.path_seconds


@pytest.mark.parametrize("policy", ["naive", "k=3"])
@pytest.mark.parametrize("capture", ["linear", "learned"])
def test_uncertain_plans_are_followed(policy: str, capture: str) -> None:
    given = ground(60)
    query = Generic(states={"F": 10_000.0}, detections=1.0, capture=capture)
    found = played(query, replace(PLANNING, policy=policy, horizon=40), given)
    static = played(query, None, given)
    assert found.migrations > 0 and found.cost < static.cost


def test_a_square_around_a_driver_is_served_by_several_leaves() -> None:
    given = ground()
    scene = Accident().scene(given, flat(), 1)
    ((speeds, _), _) = scene.sources
    most = max((speeds.ends(t) for t in range(given.seconds)), key=len)
    assert len(most) >= 2 and sum(rate for _, rate in most) == pytest.approx(speeds.average)
    plan = speeds.plan(0, even_steps(0.0, 4.0, 20))
    assert plan.stages[5][0].hosts == tuple(leaf for leaf, _ in speeds.ends(20)), "it is known exactly"


def test_rates_change_as_often_as_they_should() -> None:
    rate = changing(10.0, 100.0, 5.0, 60, 1)
    values = [rate(t) for t in range(60)]
    assert len(set(values)) == 12 and min(values) >= 10 and max(values) <= 100
    fast = changing(10.0, 100.0, 0.5, 60, 1)
    assert len({fast(t) for t in range(60)}) == 60


def test_vehicles_take_shortest_ways() -> None:
    streets = {"a": ("b", "c"), "b": ("d",), "c": ("e",), "d": ("z",), "e": ("d",), "z": ()}
    assert shortest_way(streets, "a", "z", random.Random(1)) == ["a", "b", "d", "z"]


def test_an_interrupted_measurement_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Generic(capture="exact")

    def cells() -> Cells:
        made = Cells(Size(8, 20, 2), tmp_path)
        made._ground = Ground(traffic(80), 60, 20)
        return made

    first = cells().run(query, "quad", PLANNING)
    monkeypatch.setattr("benchmarks.migration.cells.Simulation", None)
    assert cells().run(query, "quad", PLANNING) == first


def test_what_files_say_of_figure_412() -> None:
    said = figure_412()
    assert list(said.states) == [0, 50_000, 200_000, 800_000]
    assert list(said.captures) == ["exact", "linear"]
    assert said.planning == Planning(reach=2500.0)
    assert said.edge == 1000.0 and said.greedy_s == 5
