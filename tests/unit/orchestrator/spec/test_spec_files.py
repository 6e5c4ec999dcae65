"""Files that are right: what we ship loads, what we write loads again, schemas are up to date."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.dataflow.model.query_problems import find_cycle
from orchestrator.mobility.random_waypoint import RandomWaypoint
from orchestrator.planning.load import load_any, load_experiment, load_topology
from orchestrator.planning.sweep import cells
from orchestrator.spec.area import Area
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.radio import DiscRadio, Radio80211b
from orchestrator.spec.schema import schema_files
from orchestrator.spec.topology import Topology
from orchestrator.spec.yaml_source import parse_document
from tests.unit.specs import experiment, section, topology

ROOT = Path(__file__).parents[4]
SHIPPED = sorted([*ROOT.glob("experiments/**/*.yaml"), *ROOT.glob("topologies/**/*.yaml")])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_we_ship_is_valid_names_its_schema_and_loads_again_as_it_is_written(
    path: Path, tmp_path: Path
) -> None:
    loaded = load_any(path)
    first_line = path.read_text().splitlines()[0]
    named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first_line)
    assert named is not None
    kind = "experiment" if loaded.experiment else "topology"
    assert (path.parent / named[1]).resolve() == ROOT / f"orchestrator/spec/{kind}.schema.json"
    if loaded.experiment is None:
        return
    some = [cell.experiment for cell in (loaded.cells[0], loaded.cells[-1])]
    for number, found in enumerate([loaded.experiment, *some]):
        written = tmp_path / f"spec-{number}.yaml"
        written.write_text(to_yaml(found.resolved()))
        again = load_experiment(written)
        assert again == found
        assert again.resolved() == found.resolved()


def test_schemas_are_up_to_date() -> None:
    for path, text in schema_files().items():
        assert path.read_text() == text, "run: python -m orchestrator.spec.schema --write"


def test_schemas_offer_what_the_models_take() -> None:
    schemas = {path.name: json.loads(text) for path, text in schema_files().items()}
    assert set(schemas["experiment.schema.json"]["properties"]) == set(Experiment.known_keys())
    assert set(schemas["topology.schema.json"]["properties"]) == set(Topology.model_fields)
    assert schemas["experiment.schema.json"]["required"] == ["name", "topology", "duration"]
    assert {"required": ["query"]} in schemas["experiment.schema.json"]["anyOf"]


def test_the_topology_of_the_papers_emulation() -> None:
    found = load_topology(ROOT / "topologies/rwp-25.yaml")
    assert found.node_names[0] == "n01" and found.node_names[-1] == "n25"
    assert found.area == Area(1200.0, 1200.0)
    assert isinstance(found.mobility, RandomWaypoint)
    assert (found.mobility.speed, found.mobility.speed_spread) == (5.0, 1.0)
    assert isinstance(found.radio, Radio80211b)
    assert (found.radio.preset, found.radio.tx_power, found.radio.rate) == ("seed-80211b", -10.0, 11e6)


def test_the_same_on_a_disc_radio() -> None:
    found = load_topology(ROOT / "topologies/rwp-25-disc.yaml")
    assert isinstance(found.radio, DiscRadio)
    assert (found.radio.range, found.radio.bandwidth, found.radio.latency) == (300.0, 11e6, 0.001)
    assert found.mobility == load_topology(ROOT / "topologies/rwp-25.yaml").mobility


@pytest.mark.parametrize("other", ["rwp-25-fast.yaml", "rwp-50.yaml"])
def test_the_same_at_another_speed_and_size(other: str) -> None:
    found, base = (load_topology(ROOT / "topologies" / name) for name in (other, "rwp-25.yaml"))
    assert found.radio == base.radio
    assert isinstance(found.mobility, RandomWaypoint)
    assert found.mobility.pause == 2.0 and found.mobility.speed_spread == 1.0
    density = [len(each.node_names) / (each.area.width * each.area.height) for each in (found, base)]
    assert density[0] == pytest.approx(density[1], rel=0.001)


def test_the_quickstart() -> None:
    found = load_experiment(ROOT / "experiments/quickstart.yaml")
    assert section(found).dataflow().inner() == ("detect", "recognise")
    assert (found.warmup, found.duration) == (10.0, 40.0)
    assert (found.backend, section(found).query.build().name) == ("auto", "face_recognition")
    assert [cell.factors for cell in cells(found)] == [{"replicas": k} for k in (1, 3)]


names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True) | st.sampled_from(
    ["no", "on", "null", "true", "08", "1e3", "0x1f", "2024-01-01", "12_000", "1", "yes", "0o7"]
)


@given(
    nodes=st.lists(names, min_size=4, max_size=8, unique=True),
    speed=st.floats(0.001, 1000),
    side=st.floats(100.0, 1e6),
    name=names,
)
@settings(max_examples=100, deadline=None)
def test_any_names_and_numbers_survive_writing_and_reading(
    nodes: list[str], speed: float, side: float, name: str
) -> None:
    mobility = {"model": "random_waypoint", "speed": speed}
    found = experiment(
        name=name,
        topology=topology(nodes=nodes, mobility=mobility, area=[side, side]),
        sweep={"replicas": [1]},
    )
    text = to_yaml(found.resolved())
    assert Experiment.model_validate(parse_document("spec.yaml", text).value) == found


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused_in_our_words(text: str) -> None:
    try:
        parse_document("x.yaml", text)
    except BadSpec as error:
        assert error.problems


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("010", 10),
        ("1e3", 1000.0),
        ("true", True),
        ("~", None),
        ('"5"', "5"),
        ("'null'", "null"),
    ],
)
def test_words_stay_words(written: str, value: Any) -> None:
    (read,) = parse_document("x.yaml", f"- {written}").value
    assert read == value and type(read) is type(value)


def test_experiment_and_topology_are_told_apart() -> None:
    with pytest.raises(BadSpec, match="this is a topology, not an experiment"):
        load_experiment(ROOT / "topologies/line-5.yaml")
    with pytest.raises(BadSpec, match="this is an experiment, not a topology"):
        load_topology(ROOT / "experiments/line.yaml")


def test_addresses_are_unique_and_by_place() -> None:
    addresses = Topology.model_validate(topology(nodes=600)).addresses()
    assert addresses["n001"] == "10.77.0.1" and addresses["n251"] == "10.77.1.1"
    assert len(set(addresses.values())) == 600


def test_grid_positions() -> None:
    grid = {"model": "static", "grid": {"columns": 2, "spacing": "100 m"}}
    found = Topology.model_validate(topology(nodes=["a", "b", "c"], mobility=grid))
    assert found.static_positions() == {"a": (0, 0), "b": (100, 0), "c": (0, 100)}


def test_an_inline_dataflow() -> None:
    operators = {
        "camera": {"kind": "synthetic_source", "rate": "5 fps", "payload": "2 kB"},
        "left": {"kind": "work", "after": "camera", "cpu": "5 ms"},
        "right": {"kind": "work", "after": ["camera"], "output": "1 KiB"},
        "screen": {"kind": "sink", "after": ["left", "right"]},
    }
    query = section(experiment(query={"operators": operators})).dataflow()
    assert query.operator("camera").params == {"rate": 5.0, "payload": 2000, "limit": 0}
    assert query.operator("left").params == {"cpu": 0.005}
    assert query.operator("right").params == {"cpu": 0.005, "output": 1024}
    assert query.operator("screen").after == ("left", "right")


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), min_size=1)
)
def test_a_cycle_that_is_found_is_one(inputs: dict[str, list[str]]) -> None:
    after = {name: tuple(ups) for name, ups in inputs.items()}
    cycle = find_cycle(after)
    for upstream, downstream in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert upstream in after[downstream]
    if not cycle:
        order: list[str] = []
        while len(order) < len(after):
            ready = [
                n for n in after if n not in order and all(u in order or u not in after for u in after[n])
            ]
            assert ready
            order += ready
