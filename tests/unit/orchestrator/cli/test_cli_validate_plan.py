"""The verbs that only look: `rove validate` and `rove plan`."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.errors import BadInput
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.load import load_experiment, load_topology

ROOT = Path(__file__).parents[4]
THREE_CELLS = str(ROOT / "tests/unit/three_cells.yaml")
BAD = str(ROOT / "tests/unit/bad_files/many_problems.yaml")
runner = CliRunner()


def test_validate_says_one_line_for_each_good_file() -> None:
    result = runner.invoke(app, ["validate", THREE_CELLS, str(ROOT / "topologies/line-5.yaml")])
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.endswith("three_cells.yaml: ok, experiment three-cells, 25 nodes, 3 runs")
    assert second.endswith("line-5.yaml: ok, topology line-5, 5 nodes")


def test_validate_lists_every_problem_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["validate", BAD, THREE_CELLS, "missing.yaml"])
    assert result.exit_code == 2
    assert "many_problems.yaml: 8 problems" in result.stderr
    assert "missing.yaml: 1 problem\n  no such file" in result.stderr
    assert "three_cells.yaml: ok" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_validate_gives_problems_as_json() -> None:
    result = runner.invoke(app, ["validate", BAD, THREE_CELLS, "--json"])
    assert result.exit_code == 2
    bad, good = json.loads(result.stdout)["files"]
    assert (bad["ok"], good["ok"], good["cells"]) == (False, True, 3)
    unknown = next(problem for problem in bad["problems"] if problem["path"] == "warmpu")
    assert unknown["line"] == 9
    assert unknown["hint"] == 'did you mean "warmup"?'


def test_plan_shows_nodes_replicas_cells_and_time() -> None:
    result = runner.invoke(app, ["plan", THREE_CELLS, "--cell", "3"])
    assert result.exit_code == 0
    for expected in (
        "25: n01",
        "random waypoint, 5 ± 1 m/s",
        "replicas = 3",
        "recognise",
        "7 min",
        "estimate",
    ):
        assert expected in result.stdout


def test_plan_of_a_run_on_real_kernels_promises_no_virtual_time(tmp_path: Path) -> None:
    (tmp_path / "line-5.yaml").write_text((ROOT / "topologies/line-5.yaml").read_text())
    experiment = tmp_path / "experiment.yaml"
    text = "name: real\ntopology: line-5.yaml\nbackend: netns\nquery: synthetic_chain\nduration: 50s\n"
    experiment.write_text(text)
    shown = runner.invoke(app, ["plan", str(experiment)]).stdout
    assert "Real time 50 s" in shown
    assert "less than" not in shown and "Virtual time" not in shown


def test_plan_shows_reliability_expectations_and_a_warm_up_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "line-5.yaml").write_text((ROOT / "topologies/line-5.yaml").read_text())
    experiment = tmp_path / "experiment.yaml"
    query = "query: {name: synthetic_chain, reliability: exactly_once}\n"
    expected = "expect: ['throughput_fps > 1', 'loss_ratio < 0.05']\n"
    text = f"name: some\ntopology: line-5.yaml\n{query}duration: 50s\nwarmup: 20s\n{expected}"
    experiment.write_text(text)
    shown = runner.invoke(app, ["plan", str(experiment)]).stdout
    assert "exactly_once: no tuple is lost, none is delivered twice" in shown
    assert "throughput_fps > 1" in shown and "loss_ratio < 0.05" in shown
    assert "warning the warm-up of 20 s is shorter than the 35 s" in shown
    (cell,) = json.loads(runner.invoke(app, ["plan", str(experiment), "--json"]).stdout)["cells"]
    assert cell["reliability"] == "exactly_once"
    assert cell["expect"] == ["throughput_fps > 1", "loss_ratio < 0.05"]
    assert len(cell["warnings"]) == 1
    experiment.write_text(text.replace("20s", "35s"))
    assert "warning" not in runner.invoke(app, ["plan", str(experiment)]).stdout


def test_plan_as_json_places_every_cell() -> None:
    document = json.loads(runner.invoke(app, ["plan", THREE_CELLS, "--json"]).stdout)
    assert (document["cell_count"], document["virtual_seconds"]) == (3, 420.0)
    assert [cell["factors"] for cell in document["cells"]] == [{"replicas": k} for k in (1, 2, 3)]
    assert [len(cell["replicas"]) for cell in document["cells"]] == [4, 6, 8]


def test_plan_says_why_there_are_so_many_replicas_and_who_shares_a_node(tmp_path: Path) -> None:
    changes = {
        "replicas": "auto",
        "placement": {"policy": "colocate"},
        "topology": "rwp-25.yaml",
        "sweep": {},
    }
    document = yaml.safe_load(Path(THREE_CELLS).read_text()) | changes
    (tmp_path / "rwp-25.yaml").write_bytes((ROOT / "topologies/rwp-25.yaml").read_bytes())
    file = tmp_path / "derived.yaml"
    file.write_text(yaml.safe_dump(document))
    shown = runner.invoke(app, ["plan", str(file)])
    assert shown.exit_code == 0
    assert "k = 2 for detect, recognise: " in shown.stdout
    assert "hops from source to sink (k = 1: " in shown.stdout
    (cell,) = json.loads(runner.invoke(app, ["plan", str(file), "--json"]).stdout)["cells"]
    assert [(found["operator"], found["replicas"]) for found in cell["derived"]] == [
        ("detect", 2),
        ("recognise", 2),
    ]
    nodes = {replica["replica"]: replica["node"] for replica in cell["replicas"]}
    assert all(nodes[f"detect/{i}"] == nodes[f"recognise/{i}"] for i in range(2))


def test_plan_numbers_cells_as_run_directories_are() -> None:
    document = json.loads(runner.invoke(app, ["plan", THREE_CELLS, "--cell", "2", "--json"]).stdout)
    assert [(cell["cell"], cell["factors"]) for cell in document["cells"]] == [(2, {"replicas": 2})]


@pytest.mark.parametrize("name", ["out.movements", "out.movements.gz", "out.ns_movements"])
def test_plan_writes_a_trace_that_a_topology_can_name(name: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["plan", THREE_CELLS, "--trace", str(tmp_path / name)])
    assert result.exit_code == 0 and "Movements of cell 1 written to" in result.stdout
    original = load_experiment(Path(THREE_CELLS))
    text = (ROOT / "topologies/rwp-25.yaml").read_text()
    start, end = text.index("mobility:"), text.index("radio:")
    topology = tmp_path / "topology.yaml"
    topology.write_text(f"{text[:start]}mobility: {{model: trace, file: {name}}}\n{text[end:]}")
    expected = generate_trace(original.topology, original.seed, 140.0)
    read = generate_trace(load_topology(topology), 99, 140.0)
    for t in (0.0, 33.3, 139.9):
        for node, position in expected.at(t).items():
            assert read.position(node, t) == pytest.approx(position, abs=1e-4)


@pytest.mark.parametrize("name", ["out.csv", "absent/out.movements"])
def test_plan_of_a_trace_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["plan", THREE_CELLS, "--trace", str(tmp_path / name)])
    assert isinstance(result.exception, BadInput)
    assert list(tmp_path.iterdir()) == []


def test_plan_of_a_cell_that_is_not_there() -> None:
    result = runner.invoke(app, ["plan", THREE_CELLS, "--cell", "4"])
    assert isinstance(result.exception, BadInput)
    assert str(result.exception).endswith("has 3 cells, numbered from 1")


def test_plan_draws_who_meets_whom_when(tmp_path: Path) -> None:
    ferry = str(ROOT / "experiments/ferry.yaml")
    shown = runner.invoke(app, ["plan", ferry, "--contacts", str(tmp_path / "ferry.csv")])
    assert shown.exit_code == 0
    assert "Contacts in 600 s: who meets whom when" in shown.stdout
    assert "2 contacts, up 20%, EAP 60 s, EDP 240 s, longest gap 240 s" in shown.stdout
    assert "bus1,base,180.0,240.0\n" in (tmp_path / "ferry.csv").read_text()
    document = json.loads(
        runner.invoke(app, ["plan", ferry, "--json", "--contacts", str(tmp_path / "f.svg")]).stdout
    )
    assert document["outlook"] is None
    assert document["contacts"]["links"][0]["contacts"] == [[0.0, 30.0], [300.0, 330.0]]
    assert (tmp_path / "f.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("file", "written", "message"),
    [("ferry", "ferry.png", "must end in .csv or .svg"), ("line", "line.svg", "links follow from distance")],
)
def test_plan_writes_contacts_only_where_there_are_some(
    tmp_path: Path, file: str, written: str, message: str
) -> None:
    arguments = ["plan", str(ROOT / f"experiments/{file}.yaml"), "--contacts", str(tmp_path / written)]
    result = runner.invoke(app, arguments)
    assert result.exit_code != 0 and isinstance(result.exception, BadInput | SystemExit)
    assert message in f"{result.exception} {result.stderr}"


def test_plan_draws_no_links_that_are_always_up() -> None:
    shown = runner.invoke(app, ["plan", str(ROOT / "experiments/mcep/accident.yaml")])
    assert shown.exit_code == 0
    assert "Contacts all 216 links are always up" in shown.stdout and "█" not in shown.stdout
