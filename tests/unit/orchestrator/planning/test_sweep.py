"""Sweeps: cells in file order, factors in base units, and everything else alike."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_experiment, load_planned
from orchestrator.planning.sweep import cells
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.routing import read_protocol
from tests.unit.specs import experiment, section, topology


def test_without_a_sweep_there_is_one_cell() -> None:
    (cell,) = cells(experiment())
    assert (cell.number, cell.factors, cell.experiment) == (1, {}, experiment())


def test_cells_are_the_product_in_the_order_of_the_file() -> None:
    found = cells(experiment(sweep={"replicas": [2, 1], "topology.mobility.speed": ["36 km/h", 1]}))
    assert [cell.factors for cell in found] == [
        {"replicas": 2, "topology.mobility.speed": 10.0},
        {"replicas": 2, "topology.mobility.speed": 1.0},
        {"replicas": 1, "topology.mobility.speed": 10.0},
        {"replicas": 1, "topology.mobility.speed": 1.0},
    ]
    assert [cell.number for cell in found] == [1, 2, 3, 4]
    assert all(not cell.experiment.sweep for cell in found)


def test_a_cell_is_the_experiment_written_out_by_hand() -> None:
    sweep = {
        "query.rate": ["20 fps"],
        "topology.nodes": [50],
        "switching.threshold": [1],
        "placement.seed": [4],
    }
    (cell,) = cells(experiment(sweep=sweep))
    by_hand = cell.experiment
    assert by_hand.topology.node_names[-1] == "n50"
    assert section(by_hand).dataflow().operator("camera").params["rate"] == 20.0
    assert section(by_hand).switching.threshold == 1
    assert section(by_hand).placement.model_dump()["seed"] == 4


def test_a_named_query_stays_a_name_among_the_factors() -> None:
    (cell,) = cells(experiment(sweep={"query": ["synthetic_chain"]}))
    assert cell.factors == {"query": "synthetic_chain"}


def test_cells_that_differ_in_k_see_the_same_movements() -> None:
    found = cells(experiment(sweep={"replicas": [1, 2, 3]}))
    traces = [generate_trace(cell.experiment.topology, cell.experiment.seed, 30).paths for cell in found]
    assert traces[0] == traces[1] == traces[2]


def test_a_changed_experiment_is_checked_again() -> None:
    with pytest.raises(BadSpec, match="26 nodes are needed"):
        cells(experiment(replicas=12))


def test_what_is_wrong_in_every_cell_is_reported_once_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(
        "name: demo\n"
        "topology: {name: t, nodes: 9, area: 10 m x 10 m, mobility: {model: random_waypoint, speed: 1},"
        " radio: {model: disc, range: 5, bandwidth: 1 Mb/s, latency: 0}}\n"
        "query: synthetic_chain\n"
        "duration: 1s\n"
        "placement: {policy: explicit, nodes: {camera: [n1], detect: [n2], recognise: [n3], screen: [x]}}\n"
        "sweep: {seed: [1, 2, 3]}\n"
    )
    with pytest.raises(BadSpec) as raised:
        load_experiment(path)
    assert {problem.path for problem in raised.value.problems} == {
        "placement.nodes.camera[0]",
        "placement.nodes.detect[0]",
        "placement.nodes.recognise[0]",
        "placement.nodes.screen[0]",
    }


def test_the_files_own_protocol_keeps_its_settings_and_others_have_their_defaults(tmp_path: Path) -> None:
    own = {"protocol": "olsr", "metric": "hops", "hello": "3s", "hello_validity": "12s", "fisheye": False}
    olsr, truth = cells(experiment(routing=own, sweep={"routing": ["olsr", "ground_truth"]}))
    assert olsr.experiment.routing == experiment(routing=own).routing
    assert truth.experiment.routing == read_protocol("ground_truth")
    assert [cell.factors["routing"] for cell in (olsr, truth)] == ["olsr", "ground_truth"]
    shown = olsr.experiment.routing.summary()
    assert shown.startswith("olsr (hops), hello 3 s, hello validity 12 s, ")
    assert shown.endswith(", fisheye false")
    file = tmp_path / "spec.yaml"
    file.write_text(to_yaml(olsr.experiment.resolved()))
    assert load_experiment(file).routing == olsr.experiment.routing


def test_a_protocol_and_a_value_in_it_can_be_varied_at_once_in_any_order() -> None:
    factors = {"routing.hello": ["2s", "3s"], "routing": ["olsr", "aodv"]}
    for sweep in (factors, dict(reversed(factors.items()))):
        found = cells(experiment(sweep=sweep))
        made = {(cell.experiment.routing.protocol, cell.factors["routing.hello"]) for cell in found}
        assert made == {("olsr", 2.0), ("olsr", 3.0), ("aodv", 2.0), ("aodv", 3.0)}


def test_whole_routing_sections_can_be_varied_and_have_a_short_name() -> None:
    sections = ["olsr", {"metric": "hops", "fisheye": False}, {"protocol": "aodv", "detection": "feedback"}]
    whole = experiment(routing={"hello": "2s"}, sweep={"routing": sections})
    kept, hops, aodv = cells(whole)
    assert [cell.factors["routing"] for cell in (kept, hops, aodv)] == [
        "olsr",
        "olsr metric=hops fisheye=false",
        "aodv detection=feedback",
    ]
    routings = [cell.experiment.routing for cell in (kept, hops, aodv)]
    assert routings == [
        experiment(routing=section).routing for section in ({"hello": "2s"}, sections[1], sections[2])
    ]
    assert Experiment.model_validate(whole.resolved()) == whole


def test_whole_sections_and_lists_are_varied_by_named_choices() -> None:
    split = [{"at": "10s", "for": "5s", "partition": ["n01"]}]
    described = experiment(
        sweep={
            "faults": {"none": [], "split": split},
            "switching": {"eager": {"threshold": 0}, "lazy": {"threshold": "20%"}},
            "replicas": {"few": 1, "many": 3},
        }
    )
    found = cells(described)
    assert [tuple(cell.factors.values()) for cell in found] == [
        (faults, switching, k)
        for faults in ("none", "split")
        for switching in ("eager", "lazy")
        for k in ("few", "many")
    ]
    assert [len(cell.run.faults) for cell in found] == [0, 0, 0, 0, 2, 2, 2, 2]
    assert (
        section(found[2].experiment).switching.threshold == section(found[6].experiment).switching.threshold
    )
    assert section(found[0].experiment).switching != section(found[2].experiment).switching
    again = Experiment.model_validate(described.resolved())
    assert [cell.factors for cell in cells(again)] == [cell.factors for cell in found]


def test_named_choices_of_a_section_and_values_inside_it_in_any_order() -> None:
    found = cells(
        experiment(
            sweep={
                "topology.nodes": [4, 6],
                "topology": {"small": topology(area="200 m x 200 m"), "large": topology()},
            }
        )
    )
    sizes = [(len(c.experiment.topology.node_names), c.experiment.topology.area.width) for c in found]
    assert sizes == [(4, 200.0), (4, 1200.0), (6, 200.0), (6, 1200.0)]


def test_topologies_of_a_sweep_are_read_from_files_next_to_it_and_kept_with_the_run(tmp_path: Path) -> None:
    for name, nodes in (("few", 4), ("many", 9)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(topology(name=name, nodes=nodes)))
    file = tmp_path / "experiment.yaml"
    document = experiment().resolved() | {
        "topology": "few.yaml",
        "sweep": {"topology": ["few.yaml", "many.yaml"]},
    }
    file.write_text(yaml.safe_dump(document))
    loaded = load_planned(file)
    assert [cell.factors for cell in loaded.cells] == [{"topology": "few"}, {"topology": "many"}]
    assert [len(cell.experiment.topology.node_names) for cell in loaded.cells] == [4, 9]
    again = load_planned(written(tmp_path / "kept", bundle(loaded.experiment)))
    assert [cell.factors for cell in again.cells] == [{"topology": "few"}, {"topology": "many"}]


def test_code_that_a_named_choice_names_is_relative_to_the_file_and_kept_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from node_agent.switching import Choice\n\ndef decide(situation, memory):\n    return Choice(None)\n"
    )
    file = tmp_path / "experiment.yaml"
    choices = {"mine": {"policy": "mine.py:decide"}, "plain": {}}
    file.write_text(yaml.safe_dump(experiment().resolved() | {"sweep": {"switching": choices}}))
    loaded = load_planned(file)
    assert [cell.factors["switching"] for cell in loaded.cells] == ["mine", "plain"]
    assert any(name.endswith("mine.py") for name in bundle(loaded.experiment))


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """Stores what was packed. Returns the experiment's file."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "spec.yaml"


def test_files_that_named_choices_name_are_relative_to_the_file_and_kept_with_the_run(tmp_path: Path) -> None:
    walks = tmp_path / "walks"
    walks.mkdir()
    for name, x in (("slow", 10), ("fast", 90)):
        (walks / f"{name}.movements").write_text(f"0 0 0 9 {x} 0\n" * 4)
        (walks / f"{name}.params").write_text("x=100\ny=100\nduration=9\nnn=4\n")
    choices = {name: {"model": "trace", "file": f"walks/{name}.movements"} for name in ("slow", "fast")}
    document = {
        "name": "walks",
        "topology": topology(nodes=4, area="100 m x 100 m"),
        "query": "synthetic_chain",
        "duration": "5s",
        "sweep": {"topology.mobility": choices},
    }
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    packed = bundle(load_planned(file).experiment)
    assert [name for name in packed if name.startswith("sweep.")] == [
        f"sweep.topology.mobility.{number}.1/{name}.{kind}"
        for number, name in enumerate(choices)
        for kind in ("movements", "params")
    ]
    kept = written(tmp_path / "kept", packed)
    shutil.rmtree(walks)
    again = load_planned(kept)
    assert [cell.factors for cell in again.cells] == [{"topology.mobility": name} for name in choices]
    places = [generate_trace(cell.experiment.topology, 1, 9.0).at(9.0)["n01"] for cell in again.cells]
    assert places == [(10.0, 0.0), (90.0, 0.0)]


def test_traces_of_flows_in_named_choices_are_kept_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "web.csv").write_text("t,size\n0,100\n1,200\n")
    document: dict[str, Any] = {
        "name": "flows",
        "topology": topology(nodes=4),
        "duration": "5s",
        "flows": {"web": {"from": "n01", "to": "n02", "rate": "10 kb/s"}},
        "sweep": {"flows.web": {"even": {"from": "n01", "to": "n02", "rate": "10 kb/s"}}},
    }
    document["sweep"]["flows.web"]["recorded"] = {"from": "n01", "to": "n02", "trace": "web.csv"}
    file = tmp_path / "experiment.yaml"
    file.write_text(yaml.safe_dump(document))
    kept = written(tmp_path / "kept", bundle(load_planned(file).experiment))
    (tmp_path / "web.csv").unlink()
    assert len(load_planned(kept).cells) == 2


def test_names_of_choices_lead_no_file_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from node_agent.switching import Choice\n\ndef decide(situation, memory):\n    return Choice(None)\n"
    )
    file = tmp_path / "experiment.yaml"
    choices = {"/../../../elsewhere": {"policy": "mine.py:decide"}, "5/10": {"policy": "mine.py:decide"}}
    file.write_text(yaml.safe_dump(experiment().resolved() | {"sweep": {"switching": choices}}))
    packed = [name for name in bundle(load_planned(file).experiment) if name.endswith("mine.py")]
    assert packed == ["sweep.switching.0.0/mine.py", "sweep.switching.1.0/mine.py"]


def test_topologies_in_files_of_the_same_name_are_two(tmp_path: Path) -> None:
    for folder, nodes in (("few", 4), ("many", 9)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "field.yaml").write_text(yaml.safe_dump(topology(nodes=nodes)))
    files = ["few/field.yaml", "many/field.yaml"]
    file = tmp_path / "experiment.yaml"
    document = experiment().resolved() | {"topology": files[0], "sweep": {"topology": files}}
    file.write_text(yaml.safe_dump(document))
    assert [cell.factors for cell in load_planned(file).cells] == [{"topology": each} for each in files]
