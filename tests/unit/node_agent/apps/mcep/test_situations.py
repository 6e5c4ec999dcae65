"""Situations around vehicles in SUMO's traffic, from drives to results at the one that asks."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.mcep.oracle import Oracle
from benchmarks.mcep_speed import stage_of
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.model import McepError, atomic
from node_agent.apps.mcep.sensing import Drive, Reading, Sample
from node_agent.apps.mcep.situations import LANE, SITUATIONS, SPEED, graph_of, values_of
from orchestrator.apps.mcep.stage import driven
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.spec.area import Area

SIDE, UNTIL = 640.0, 25.0
CARS = tuple(f"car{number}" for number in range(1, 13))


def vehicles(seed: int = 1) -> dict[str, Drive]:
    found = SumoTraffic(model="sumo").drives(CARS, Area(SIDE, SIDE), seed, UNTIL)
    return {name: Drive([Sample(*each) for each in samples]) for name, samples in found.items()}


@pytest.mark.parametrize("situation", ["average_speed", "accident"])
def test_a_driver_gets_what_an_observer_sees(situation: str) -> None:
    drives = vehicles()
    town = stage_of(drives, Box(0, 0, SIDE, SIDE), situation, 500.0)
    readings = driven(drives, 1.0, UNTIL)
    town.play(readings, UNTIL)
    events = [
        atomic(each.type, each.t, each.place, number, name, each.attributes)
        for name, seen in readings.items()
        for number, each in enumerate(seen)
    ]
    assert town.seen == len(events)
    home = next(each for each in town.brokers.values() if each.markers("ahead"))
    markers = home.markers("ahead")
    assert len(markers) > 20 and markers[-1].region is None
    query = home.query("ahead")
    world: Any = SimpleNamespace(query=query, events=tuple(sorted(events, key=lambda each: each.key)))
    oracle = Oracle(world, markers)
    results = town.clients["car1"].results
    for epoch in range(1, len(markers)):
        found = [each.event for _, each in results if each.epoch == epoch]
        assert [(e.t, e.attributes) for e in found] == [(e.t, e.attributes) for e in oracle.expected(epoch)]
    assert results or situation == "accident"


def test_an_accident() -> None:
    """One brakes hard, and two others swerve."""
    jam = [Sample(t, 300 + t, 300, 15.0 if t < 10 else 1.0, "street_0") for t in range(25)]
    swerving = [Sample(t, 290 + t, 303, 8.0, "street_0" if t < 14 else "street_1") for t in range(25)]
    second = [Sample(t, 280 + t, 303, 8.0, "street_0" if t < 16 else "street_1") for t in range(25)]
    drives = {name: Drive(samples) for name, samples in (("car1", jam), ("car2", swerving), ("car3", second))}
    town = stage_of(drives, Box(0, 0, SIDE, SIDE), "accident", 500.0)
    town.play(driven(drives, 1.0, UNTIL), UNTIL)
    found = [each for _, each in town.clients["car1"].results if not each.historical]
    assert [each.event.type for each in found] == ["accident"]
    assert found[0].event.t == 16 and found[0].event.attributes == {"lost": 14.0, "changes": 2}


def test_a_drive_is_read() -> None:
    drive = Drive([Sample(0, 0, 0, 5.0, "a_0"), Sample(2, 10, 0, 5.0, "a_1"), Sample(4, 20, 0, 3.0, "b_0")])
    assert drive.at(1.0) == Sample(1.0, 5.0, 0.0, 5.0, "a_0")
    assert drive.at(-1.0).speed == 0 and drive.at(9.0) == Sample(9.0, 20, 0, 0.0, "b_0")
    assert list(drive.readings(2.0, 5.0, 0.5)) == [
        Reading(0.5, SPEED, Point(2.5, 0), {"speed": 5.0}),
        Reading(2, LANE, Point(10, 0), {"lane": "a_1"}),
        Reading(2.5, SPEED, Point(12.5, 0), {"speed": 5.0}),
        Reading(4.5, SPEED, Point(20, 0), {"speed": 0.0}),
    ]
    with pytest.raises(ValueError, match="times grow"):
        Drive([Sample(1, 0, 0), Sample(1, 0, 0)])


def test_parameters_of_situations() -> None:
    for name in SITUATIONS:
        assert graph_of(name, {}).order == graph_of(name, values_of(name, {})).order
    with pytest.raises(KeyError, match="unknown"):
        graph_of("accident", {"unknown": 1.0})
    with pytest.raises(McepError, match="at least 1 event"):
        graph_of("average_speed", {"readings": 0})
