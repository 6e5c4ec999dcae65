"""Vehicles: SUMO's traces, and the traffic that it simulates for a topology."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.errors import BadInput
from orchestrator.mobility import sumo_tools
from orchestrator.mobility.fcd import parse_fcd
from orchestrator.mobility.formats import format_of, read_trace, write_trace
from orchestrator.mobility.streets import drive, read_streets
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.mobility.trace_file import TraceError
from orchestrator.model.trace import Sample, Trace, Waypoint
from orchestrator.spec.area import Area
from orchestrator.spec.file_reference import FOLDER

AREA = Area(1040.0, 640.0)
NODES = tuple(f"v{number}" for number in range(8))
FCD = """<?xml version="1.0"?>
<fcd-export>
  <timestep time="0.00"><vehicle id="b" x="1" y="2" speed="3.5" lane="A0_0"/></timestep>
  <timestep time="1.00">
    <vehicle id="a" x="9" y="8"/><vehicle id="b" x="4" y="2" speed="3" lane="A0_1"/>
    <person id="p" x="0" y="0"/>
  </timestep>
</fcd-export>
"""


def test_vehicles_are_read_in_the_order_in_which_they_appear(tmp_path: Path) -> None:
    vehicles = parse_fcd(FCD, "f")
    assert list(vehicles) == ["b", "a"]
    assert vehicles["b"] == [Sample(0, 1, 2, 3.5, "A0_0"), Sample(1, 4, 2, 3, "A0_1")]
    file = tmp_path / "town.fcd.xml"
    file.write_text(FCD)
    trace = read_trace(file, "fcd", ["n1", "n2"], AREA)
    assert trace.paths == {"n1": (Waypoint(0, 1, 2), Waypoint(1, 4, 2)), "n2": (Waypoint(1, 9, 8),)}
    assert trace.position("n2", 0.5) == (9, 8)
    assert format_of("Town.FCD.xml.gz") == "fcd" and format_of("town.xml") is None
    with pytest.raises(BadInput, match="does not write it"):
        write_trace(file, Trace({}), AREA, 1.0)


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("", 1, "is not XML"),
        ("<fcd-export>\n<timestep>", 2, "time is not a number"),
        ("<routes/>", None, "has no <fcd-export>"),
        ("<fcd-export><vehicle id='a' x='1' y='1'/></fcd-export>", 1, "outside of a timestep"),
        ("<fcd-export><timestep time='1'/>\n<timestep time='1'/></fcd-export>", 2, "time runs backwards"),
        ("<fcd-export><timestep time='-1'/></fcd-export>", 1, "time is negative"),
        ("<fcd-export><timestep time='1'><vehicle x='1' y='1'/></timestep></fcd-export>", 1, "needs an id"),
        (FCD.replace('x="9"', 'x="nan"'), 5, "x is not finite"),
        (FCD.replace('x="9"', 'x="2000"'), 5, "lies outside the area"),
        (FCD.replace('y="8"', ""), 5, "y is not a number"),
        (FCD.replace('id="a"', 'id="b"'), 5, "is there twice at 1 s"),
        ('<!DOCTYPE f [<!ENTITY a "b">]>\n<fcd-export/>', 1, "has a document type"),
    ],
)
def test_bad_floating_car_data(text: str, line: int | None, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        parse_fcd(text, "f", AREA)
    assert caught.value.line == line


def traffic(**parameters: Any) -> SumoTraffic:
    return SumoTraffic(model="sumo", **parameters)


def test_vehicles_drive_through_streets_in_the_area() -> None:
    model = traffic(speed="36 km/h")
    drives = model.drives(NODES, AREA, 1, 60.0)
    assert tuple(drives) == NODES
    assert model.findings_for(NODES, AREA) == []
    for samples in drives.values():
        assert samples[0].t == 0 and samples[-1].t >= 60
        assert all(0 <= s.x <= AREA[0] and 0 <= s.y <= AREA[1] for s in samples)
        assert all(s.lane and s.speed <= 10 * 1.5 for s in samples)  # drivers differ: some are too fast
    assert any(s.speed > 5 for samples in drives.values() for s in samples)
    trace = model.trace(NODES, AREA, 1, 60.0)
    assert traffic(speed="36 km/h").trace(NODES, AREA, 1, 60.0).paths == trace.paths
    assert traffic(speed="36 km/h").trace(NODES, AREA, 2, 60.0).paths != trace.paths


def test_drives_follow_streets() -> None:
    streets = {"a": ("b", "c"), "b": ("a",), "c": ()}
    way = drive(streets, 50, random.Random(1))
    assert all(after in streets[before] for before, after in pairwise(way))
    assert drive({"c": ()}, 5, random.Random(1)) == ["c"]


def test_what_does_not_fit_is_found_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (narrow,) = traffic().findings_for(NODES, Area(150.0, 900.0))
    assert narrow.at == ("mobility", "block") and "no room for a block of 200 m" in narrow.message
    (full,) = traffic().findings_for(tuple(map(str, range(500))), Area(240.0, 240.0))
    assert "room for about 213 vehicles" in full.message
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nowhere")
    (missing,) = traffic().findings_for(NODES, AREA)
    assert "needs SUMO" in missing.message and "rove-testbed[traffic]" in missing.hint


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A configuration of the user's, in which two vehicles drive and then leave."""
    grid = ["--grid", "--grid.number", "3", "--grid.length", "100", "--output-file", "town.net.xml"]
    sumo_tools.run("netgenerate", grid, tmp_path)
    streets = read_streets(tmp_path / "town.net.xml")
    vehicles = "".join(
        f'<vehicle id="{name}" depart="{at}"><route edges="{street} {streets[street][0]}"/></vehicle>'
        for at, (name, street) in enumerate(zip(("one", "two"), streets, strict=False))
    )
    (tmp_path / "town.rou.xml").write_text(f"<routes>{vehicles}</routes>")
    (tmp_path / "town.sumocfg").write_text(
        '<configuration><input><net-file value="town.net.xml"/>'
        '<route-files value="town.rou.xml"/></input></configuration>'
    )
    return tmp_path / "town.sumocfg"


def loaded(config: Path, **more: Any) -> SumoTraffic:
    document = {"model": "sumo", "config": config.name, **more}
    return SumoTraffic.model_validate(document, context={FOLDER: config.parent})


def test_a_users_own_traffic(town: Path, tmp_path: Path) -> None:
    area = Area(300.0, 300.0)
    # SUMO's streets begin at 0, and lanes on the outside lie beyond.
    network = tmp_path / "town.net.xml"
    shifted = ["--sumo-net-file", network.name, "--offset.x", "20", "--offset.y", "20"]
    sumo_tools.run("netconvert", [*shifted, "--output-file", network.name], tmp_path)
    model = loaded(town)
    trace = model.trace(("a", "b"), area, 1, 60.0)
    assert trace.paths["a"][0].t == 0 and trace.paths["b"][0].t == 1
    assert trace.paths["a"][-1].t < 60, "it has left"
    assert model.config is not None
    assert set(model.config.contents()) == {"town.sumocfg", "town.net.xml", "town.rou.xml"}
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, content in model.config.contents().items():
        (copy / name).write_bytes(content)
    assert loaded(copy / "town.sumocfg") == model
    with pytest.raises(TraceError, match="moves 2 nodes, but the topology has 3"):
        model.trace(("a", "b", "c"), area, 1, 60.0)


@pytest.mark.parametrize(
    "text, message",
    [
        ("<configuration", "is not a configuration of SUMO's"),
        ("<configuration/>", "names no network and no routes"),
        ('<c><net-file value="../town.net.xml"/></c>', "lies in another folder"),
        ('<c><net-file value="missing.net.xml"/></c>', "does not exist|no such file|not found|cannot"),
    ],
)
def test_bad_configurations(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "town.sumocfg").write_text(text)
    with pytest.raises(ValidationError, match=message):
        loaded(tmp_path / "town.sumocfg")


def test_a_configuration_has_its_own_streets(town: Path) -> None:
    with pytest.raises(ValidationError, match="has its own streets"):
        loaded(town, lanes=3)


def test_what_sumo_refuses_is_said_in_one_sentence(town: Path, tmp_path: Path) -> None:
    (tmp_path / "town.rou.xml").write_text(
        '<routes><vehicle id="x" depart="0"><route edges="nowhere"/></vehicle></routes>'
    )
    with pytest.raises(BadInput, match=r"sumo failed: .*nowhere"):
        loaded(town).trace(("a",), Area(300.0, 300.0), 1, 10.0)
