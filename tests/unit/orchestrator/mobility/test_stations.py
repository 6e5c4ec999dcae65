"""Nodes that stand among nodes that move, and movements with speeds and lanes."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.mobility.recorded import RecordedTrace
from orchestrator.mobility.stations import Stations
from orchestrator.model.trace import Sample, Trace, Waypoint, driven
from orchestrator.spec.area import Area
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.topology import Topology

pytestmark = pytest.mark.unit

AREA = Area(400.0, 200.0)
NODES = ("b1", "car1", "car2")
WALK = {"model": "random_waypoint", "speed": "5 m/s"}


def topology(**mobility: object) -> dict[str, object]:
    section = {"model": "stations", "at": {"b1": ["10 m", "20 m"]}, "others": WALK, **mobility}
    return {"name": "town", "nodes": list(NODES), "area": "400 m x 200 m", "mobility": section}


def test_stations_stand_and_the_others_move_as_without_them() -> None:
    found = Topology.model_validate(topology())
    model = found.mobility
    assert isinstance(model, Stations)
    trace = model.trace(NODES, AREA, 1, 60.0)
    assert trace.paths["b1"] == (Waypoint(0.0, 10.0, 20.0),)
    assert {"car1": trace.paths["car1"], "car2": trace.paths["car2"]} == model.others.trace(
        NODES[1:], AREA, 1, 60.0
    ).paths
    drives = found.drives(1, 60.0)
    assert tuple(drives) == NODES and drives["b1"] == [Sample(0.0, 10.0, 20.0)]
    assert drives["car1"][0].speed == pytest.approx(5.0) and drives["car1"][-1].speed == 0.0
    assert "others: random waypoint" in model.summary()


def test_speeds_are_those_of_the_leg_that_begins() -> None:
    path = (Waypoint(0, 0, 0), Waypoint(2, 6, 8), Waypoint(3, 6, 8))
    assert [sample.speed for sample in driven(path)] == [5.0, 0.0, 0.0]
    assert Trace({"n": path}).position("n", 1) == (3, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"at": {"b2": [1, 1]}}, "there is no node"),
        ({"at": {"b1": [1, 900]}}, "outside the area"),
        ({"at": {node: [1, 1] for node in NODES}}, "no node is left to move"),
        ({"others": {"model": "static", "positions": {"car1": [1, 1]}}}, "no position for car2"),
        ({"others": {"model": "walks"}}, "walks"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Topology.model_validate(topology(**changes))


def test_traces_in_sumos_format_have_speeds_and_lanes(tmp_path: Path) -> None:
    (tmp_path / "town.fcd.xml").write_text(
        '<fcd-export><timestep time="0"><vehicle id="a" x="1" y="2" speed="3.5" lane="A0_0"/></timestep>'
        '<timestep time="1"><vehicle id="a" x="4" y="2" speed="3" lane="A0_1"/></timestep></fcd-export>'
    )
    section = {"model": "trace", "file": "town.fcd.xml"}
    model = RecordedTrace.model_validate(section, context={FOLDER: tmp_path})
    drives = model.drives(("car1",), AREA, 1, 60.0)
    assert drives == {"car1": [Sample(0, 1, 2, 3.5, "A0_0"), Sample(1, 4, 2, 3, "A0_1")]}
