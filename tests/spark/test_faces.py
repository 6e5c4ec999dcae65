"""Faces of a run whose truth is known: every figure against one counted by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.faces.events import FaceRecord, FacesSeen, FacesTrue
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.results.expectations import evaluate_expectations
from tests.synthetic_runs import END_S, FROM_S, RunWriter, known_run, ns

pytestmark = pytest.mark.timeout(240)

SOURCE, SINK = "camera/0", "screen/0"
ADA, BOB, STRANGER, UNKNOWN = "ada", "bob", "zoe", ""


class FaceRun(RunWriter):
    source = "synthetic_scene"

    def plan(self) -> DeploymentPlan:
        operators = (
            OperatorSpec("camera", self.source),
            OperatorSpec("recognise", "recognise_faces", ("camera",)),
            OperatorSpec("screen", "show_faces", ("recognise",)),
        )
        nodes = {"camera": "n1", "recognise": "n2", "screen": "n9"}
        replicas = tuple(Replica(name, 0, node) for name, node in nodes.items())
        return DeploymentPlan(Query("faces", operators), replicas)

    def show(self, frame: int, *faces: FaceRecord) -> None:
        self.record("n1", FROM_S + frame, FacesTrue(SOURCE, SOURCE, frame, faces))

    def see(self, frame: int, *faces: FaceRecord, gallery: str = "v1", late_s: float = 0.5) -> None:
        seen = FacesSeen(SINK, SOURCE, 100 + frame, frame, gallery, ns(late_s), faces)
        self.record("n9", FROM_S + frame + late_s, seen)


def at(person: str | None, x: float, distance: float | None = None) -> FaceRecord:
    return FaceRecord(person, x, 50.0, 100.0, 100.0, None if distance is None else 0.9, distance)


def face_run(root: Path) -> Path:
    run = FaceRun(root, "faces", "f1")
    for node in ("n1", "n2", "n9"):
        run.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    run.show(-5, at(ADA, 0))  # before the window
    run.see(-5, at(BOB, 0, 0.2))
    run.show(1, at(ADA, 0), at(STRANGER, 200))
    run.see(1, at(UNKNOWN, 210, 0.6), at(ADA, 10, 0.2))
    run.show(2, at(ADA, 0), at(STRANGER, 200))
    run.see(2, at(UNKNOWN, 5, 0.5), at(BOB, 205, 0.4))
    run.show(3, at(ADA, 0))
    run.see(3, at(BOB, 0, 0.3), at(UNKNOWN, 300, 0.7))  # and a face where there is none
    run.show(4, at(ADA, 0), at(BOB, 200))
    run.see(4, at(BOB, 260, 0.3))  # too far from where Bob is
    run.show(5, at(ADA, 0))  # never arrives
    run.show(6, at(ADA, 0))
    run.see(6, at(ADA, 0, 0.2))
    run.see(6, at(BOB, 0, 0.2), late_s=0.9)  # arrives once more
    run.show(7, at(ADA, 0), at(BOB, 40))  # one before the other
    run.see(7, at(BOB, 38, 0.2), at(ADA, 4, 0.2))
    run.show(8, at(BOB, 0))
    run.see(8, at(BOB, 0, 0.2), gallery="v0")  # by a replica with an old gallery
    run.show(9)
    run.see(9)
    for node in ("n1", "n2", "n9"):
        run.record(node, END_S, AgentStop("stopped"))
    directory = run.write()
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "galleries": {"v1": [ADA, BOB]}}))
    frames = directory / "nodes" / "n9" / "frames" / "screen-0"
    frames.mkdir(parents=True)
    for number in range(1, 40):
        (frames / f"{number:08d}.jpg").write_bytes(b"\xff\xd8 picture %d" % number)
    return directory


class VideoRun(FaceRun):
    source = "video_file"


def video_run(root: Path) -> Path:
    """Nobody knows who was in it."""
    run = VideoRun(root, "video", "v1")
    for node in ("n1", "n2", "n9"):
        run.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    run.see(1, at("<Ada>", 0, 0.2), at(UNKNOWN, 200, 0.6))
    run.see(2, at("<Ada>", 0, 0.2))
    run.see(3)
    for node in ("n1", "n2", "n9"):
        run.record(node, END_S, AgentStop("stopped"))
    return run.write()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def directory(spark: SparkSession, runs: Path) -> Path:
    made = face_run(runs)
    analyze([made, known_run(runs).write(), video_run(runs)], spark=spark)
    return made


def metrics_in(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())["metrics"]
    return found


def test_every_face_has_one_outcome(directory: Path) -> None:
    assert metrics_in(directory)["faces"] == {
        "ground_truth": True,
        "found": 11,
        "named": 8,
        "persons": {BOB: 5, ADA: 3},
        "named_others": 0,
        "shown": 11,
        "outcomes": {
            "confused": 1,
            "false_accept": 1,
            "false_detection": 2,
            "missed": 1,
            "rejected": 1,
            "right": 5,
            "undetected": 2,
        },
        "galleries": ["v0", "v1"],
        "unplanned_galleries": ["v0"],
    }


def test_rates_are_over_those_who_could_be_right(directory: Path) -> None:
    found = metrics_in(directory)
    assert found["detection_rate"] == pytest.approx(9 / 11)
    assert found["rank1"] == pytest.approx(5 / 7)
    assert found["false_accept_rate"] == pytest.approx(1 / 2)
    held = ["rank1 > 0.7", "false_accept_rate <= 0.5"]
    assert evaluate_expectations(held, found) == []
    assert [str(e) for e in evaluate_expectations(["detection_rate > 0.9"], found)] != []


def test_the_table_tells_each_face(spark: SparkSession, runs: Path, directory: Path) -> None:
    table = TableStore(runs).read(spark, "faces", ["f1"])
    third = table.where("frame = 3").orderBy("outcome").collect()
    assert [(row["true_person"], row["seen_person"], row["outcome"]) for row in third] == [
        (ADA, BOB, "confused"),
        (None, UNKNOWN, "false_detection"),
    ]
    (again,) = table.where("frame = 6").collect()
    assert (again["outcome"], again["latency_ns"], again["in_window"]) == ("right", ns(0.5), True)
    (before,) = table.where("frame = -5").collect()
    assert not before["in_window"]


def test_runs_without_faces_have_no_such_figures(directory: Path, runs: Path) -> None:
    known = next((runs / "known").iterdir())
    assert {"faces", "rank1", "detection_rate", "false_accept_rate"}.isdisjoint(metrics_in(known))
    assert 'id="faces"' not in write_report(known).read_text()


def test_the_report_shows_some_of_the_frames(directory: Path) -> None:
    page = write_report(directory).read_text()
    assert 'id="faces"' in page
    assert page.count('src="data:image/jpeg;base64,') == 6
    assert "named by galleries that are not of its plan: v0" in page


def test_without_ground_truth_it_is_told_what_was_found(directory: Path, runs: Path) -> None:
    video = next((runs / "video").iterdir())
    found = metrics_in(video)
    assert found["rank1"] is found["detection_rate"] is found["false_accept_rate"] is None
    told = {name: found["faces"][name] for name in ("ground_truth", "found", "named", "persons", "shown")}
    assert told == {"ground_truth": False, "found": 3, "named": 2, "persons": {"<Ada>": 2}, "shown": 0}
    page = write_report(video).read_text()
    assert "There is no ground truth to judge by" in page
    assert "&lt;Ada&gt; 2." in page
    assert "rank-1" not in page
    assert "no ground truth" not in write_report(directory).read_text()
