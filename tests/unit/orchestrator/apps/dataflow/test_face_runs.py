"""Face queries in experiment files, and their galleries on the way to the recognisers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.faces import detection, operators
from node_agent.apps.dataflow.faces.gallery import Gallery, load_gallery, save_gallery
from node_agent.apps.dataflow.faces.params import RecogniseParams
from node_agent.apps.dataflow.faces.preload import preload
from node_agent.apps.dataflow.faces.scene_gallery import scene_gallery
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.operators.registry import OPERATORS, OperatorUnusable
from orchestrator.apps.dataflow.faces.galleries import pinned
from orchestrator.apps.dataflow.faces.installed import KINDS, require_faces, uses_models
from orchestrator.backends.choice import Choice, choose, with_backend
from orchestrator.backends.netns.checks import Check
from orchestrator.errors import BadInput
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_experiment
from orchestrator.planning.sweep import cells
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import BadSpec
from tests.unit.specs import deployed, experiment, section
from tests.unit.video_worlds import Bench

FEW = {"name": "face_recognition", "persons": 2, "enrolled": 1}


@pytest.fixture(scope="module")
def small() -> Gallery:
    return scene_gallery(2, 1)


def written(folder: Path, query: dict[str, Any], **changes: Any) -> Path:
    file = folder / "faces.yaml"
    document = experiment(query="synthetic_chain", **changes).resolved() | {"query": query}
    file.write_text(msgspec.json.encode(document).decode())
    return file


def recogniser(query: Query) -> RecogniseParams:
    return msgspec.convert(query.operator("recognise").params, RecogniseParams)


def test_its_name_is_enough() -> None:
    found = section(experiment(query="face_recognition")).dataflow()
    assert [operator.kind for operator in found.operators] == [
        "synthetic_scene",
        "detect_faces",
        "recognise_faces",
        "show_faces",
    ]


def test_files_are_relative_to_the_experiment_and_must_exist(tmp_path: Path, small: Gallery) -> None:
    save_gallery(small, tmp_path / "staff.gallery")
    found = load_experiment(written(tmp_path, {**FEW, "gallery": "staff.gallery"}))
    assert recogniser(section(found).dataflow()).gallery == str(tmp_path / "staff.gallery")
    (tmp_path / "walk.mp4").touch()
    source = {**FEW, "source": "video_file"}
    query = section(load_experiment(written(tmp_path, {**source, "path": "walk.mp4"}))).dataflow()
    assert query.operator("camera").params["path"] == str(tmp_path / "walk.mp4")


@pytest.mark.parametrize(
    ("changes", "place", "text"),
    [
        ({"gallery": "staff.gallery"}, "query.gallery", "no such gallery"),
        ({"gallery": "faces.yaml"}, "query.gallery", "not a gallery"),
        ({"gallery": "empty.gallery"}, "query.gallery", "nobody is in this gallery"),
        ({"source": "video_file", "path": "walk.mp4"}, "query.path", "no such file or folder"),
        ({"source": "pictures", "path": "faces.yaml"}, "query.path", "this is no folder"),
        ({"source": "video_file", "path": "."}, "query.path", "this is no file"),
        ({"source": "pictures"}, "query", "needs a path"),
        ({"forward": "nothing"}, "query.forward", "not known here"),
        ({"quality": 3}, "query.quality", "at least 10"),
        ({"persons": 60}, "query.persons", "at most 40"),
        ({"persons": 40}, "query.persons", "nobody is left to be a stranger"),
    ],
)
def test_what_cannot_be_used_is_said_where_it_stands(
    changes: dict[str, Any], place: str, text: str, tmp_path: Path
) -> None:
    save_gallery(Gallery(), tmp_path / "empty.gallery")
    with pytest.raises(BadSpec) as refused:
        load_experiment(written(tmp_path, {**FEW, **changes}))
    (problem,) = refused.value.problems
    assert problem.path == place
    assert text in problem.message


def test_all_people_may_be_of_interest_where_there_are_no_strangers(tmp_path: Path) -> None:
    load_experiment(written(tmp_path, {**FEW, "persons": 40, "strangers": 0.0}))


def test_a_detector_that_opencv_lacks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(detection.CASCADES, "lbp", "no_such_cascade.xml")
    with pytest.raises(BadSpec, match=r"query\.detector.*has no no_such_cascade\.xml; use detector yunet"):
        load_experiment(written(tmp_path, {**FEW, "detector": "lbp"}))
    operators = {
        "camera": {"kind": "synthetic_scene"},
        "find": {"kind": "detect_faces", "after": "camera", "detector": "lbp"},
        "screen": {"kind": "show_faces", "after": "find"},
    }
    with pytest.raises(BadSpec, match=r"query\.operators\.find\.detector"):
        load_experiment(written(tmp_path, {"operators": operators}))
    with pytest.raises(BadSpec, match="no_such_cascade"):
        load_experiment(written(tmp_path, FEW, sweep={"query.detector": ["yunet", "lbp"]}))
    load_experiment(written(tmp_path, FEW))


def test_figures_of_faces_can_be_expected_only_where_faces_are_shown(tmp_path: Path) -> None:
    expect = ["throughput_fps > 1", "rank1 > 0.9"]
    load_experiment(written(tmp_path, FEW, expect=expect))
    with pytest.raises(BadSpec) as refused:
        load_experiment(written(tmp_path, {"name": "synthetic_chain"}, expect=expect))
    (problem,) = refused.value.problems
    assert "no run of this query has rank1" in problem.message


def test_a_sweep_cannot_vary_files_but_what_is_done_with_them(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="write one experiment for each gallery"):
        load_experiment(written(tmp_path, FEW, sweep={"query.gallery": ["a", "b"]}))
    varied = experiment(query=FEW, sweep={"query.forward": ["frames", "crops"]})
    assert [c.factors["query.forward"] for c in cells(varied)] == ["frames", "crops"]


def test_a_camera_is_looked_for_on_its_node_only(tmp_path: Path) -> None:
    camera = {**FEW, "source": "camera", "path": "/dev/video9"}
    query = section(load_experiment(written(tmp_path, camera, backend="netns"))).dataflow()
    assert query.operator("camera").params["device"] == "/dev/video9"
    with pytest.raises(BadSpec, match="a camera takes its pictures in real time"):
        load_experiment(written(tmp_path, camera, backend="sim"))


def test_a_run_has_its_own_copy_and_the_plan_its_version(tmp_path: Path, small: Gallery) -> None:
    save_gallery(small, tmp_path / "staff.gallery")
    found = load_experiment(written(tmp_path, {**FEW, "gallery": "staff.gallery"}))
    run = tmp_path / "run"
    run.mkdir()
    plan, persons = pinned(deployed(found), run)
    assert persons == {small.version: tuple(small.persons)}
    params = recogniser(plan.query)
    assert params.version == small.version
    assert Path(params.gallery).parent == run / "galleries"
    assert load_gallery(Path(params.gallery)) == small
    assert (run / "galleries").stat().st_mode & 0o777 == 0o700
    assert Path(params.gallery).stat().st_mode & 0o777 == 0o600


def test_where_no_gallery_is_named_it_is_the_scenes_and_made_once(tmp_path: Path, small: Gallery) -> None:
    plan = deployed(experiment(query=FEW))
    first = pinned(plan, tmp_path)
    (file,) = (tmp_path / "galleries").iterdir()
    made = file.stat()
    assert recogniser(first.plan.query).version == small.version
    assert pinned(plan, tmp_path) == first
    assert file.stat() == made


def test_other_queries_are_left_as_they_are(tmp_path: Path) -> None:
    plan = deployed(experiment())
    assert pinned(plan, tmp_path) == (plan, {})
    assert list(tmp_path.iterdir()) == []


def test_the_runs_directory_needs_nothing_outside(tmp_path: Path, small: Gallery) -> None:
    save_gallery(small, tmp_path / "staff.gallery")
    found = load_experiment(written(tmp_path, {**FEW, "gallery": "staff.gallery"}))
    elsewhere = tmp_path / "run"
    for name, content in bundle(found).items():
        (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / name).write_bytes(content)
    (tmp_path / "staff.gallery").unlink()
    again = load_experiment(elsewhere / "spec.yaml")
    plan, _ = pinned(deployed(again), elsewhere)
    assert recogniser(plan.query).version == small.version
    assert len(list((elsewhere / "galleries").iterdir())) == 1


def test_a_recogniser_with_an_old_gallery_does_not_start(tmp_path: Path, small: Gallery) -> None:
    path = tmp_path / "old.gallery"
    save_gallery(small, path)
    Bench("recognise_faces", gallery=str(path), version=small.version)
    save_gallery(small.remove(next(iter(small.persons))), tmp_path / "new.gallery")
    with pytest.raises(OperatorUnusable, match=f"but the run is planned with {small.version}"):
        Bench("recognise_faces", gallery=str(tmp_path / "new.gallery"), version=small.version)


def test_models_are_loaded_for_those_who_use_them(tmp_path: Path) -> None:
    plan, _ = pinned(deployed(experiment(query=FEW)), tmp_path)
    file = tmp_path / "query.json"
    file.write_bytes(msgspec.json.encode(plan.query))
    preload(str(file))
    assert uses_models(plan.query) and not uses_models(section(experiment()).dataflow())
    factories = {name for name in OPERATORS if OPERATORS[name].factory.__module__ == operators.__name__}
    assert factories == KINDS


def test_agents_of_other_queries_never_load_opencv() -> None:
    check = (
        "import sys, node_agent.agent.process, orchestrator.planning.load;"
        "import orchestrator.backends.netns.backend, node_agent.apps.dataflow.application;"
        "sys.exit('cv2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_what_is_missing_is_said_before_anything_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.apps.dataflow.faces import installed

    monkeypatch.setattr(installed, "MODULES", {"no_such_module": "no-such-package"})
    require_faces([section(experiment()).dataflow()], "this query")
    with pytest.raises(
        BadInput, match=r"this query needs .*no-such-package: pip install 'rove-testbed\[faces\]'"
    ):
        require_faces([section(experiment(query="face_recognition")).dataflow()], "this query")


def test_auto_takes_namespaces_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = [Check("veth pair", True), Check("TAP device", False, "modprobe tun", required=False)]

    def chosen(cores: int, found: list[Check]) -> Choice:
        monkeypatch.setattr("os.sched_getaffinity", lambda process: range(cores))
        monkeypatch.setattr("orchestrator.backends.netns.checks.checks", lambda: found)
        return choose()

    assert chosen(2, fine).backend == "netns"
    assert chosen(1, fine).backend == "sim"
    lacking = chosen(2, [*fine, Check("bridge", False, "modprobe bridge")])
    assert lacking.backend == "sim"
    assert "bridge: modprobe bridge" in str(lacking)


def test_auto_is_settled_for_the_whole_experiment() -> None:
    found, choice = with_backend(experiment(backend="auto", sweep={"replicas": [1, 2]}))
    assert choice is not None
    assert {cell.experiment.backend for cell in cells(found)} == {choice.backend}
    named = experiment(backend="sim")
    assert with_backend(named) == (named, None)


def test_auto_needs_a_protocol_that_runs_on_both() -> None:
    with pytest.raises(BadSpec, match="babel does not run on the backend sim"):
        cells(Experiment.model_validate(experiment().resolved() | {"backend": "auto", "routing": "babel"}))
