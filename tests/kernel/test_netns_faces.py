"""Faces over a real network: what arrives was seen exactly as one machine alone sees it."""

import json
from pathlib import Path
from typing import Any

import msgspec

from node_agent.apps.dataflow.faces.detection import shared_detector
from node_agent.apps.dataflow.faces.events import FaceRecord
from node_agent.apps.dataflow.faces.gallery import load_gallery
from node_agent.apps.dataflow.faces.pixels import decode_image, encode_jpeg
from node_agent.apps.dataflow.faces.recognition import Recogniser
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings
from node_agent.telemetry.segments import read_records
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import own_reasons, root_of
from tests.unit.rove_process import RUN_ID, experiment_file, rove

PERSONS, ENROLLED, QUALITY = 4, 2, 70
QUERY = {
    "name": "face_recognition",
    "rate": 5,
    "persons": PERSONS,
    "enrolled": ENROLLED,
    "quality": QUALITY,
    "every": 4,
    "keep": 3,
}
PLACEMENT = {
    "policy": "explicit",
    "nodes": {"camera": ["a"], "detect": ["b"], "recognise": ["d"], "screen": ["e"]},
}


def of_kind(run: RunDirectory, kind: str) -> list[dict[str, Any]]:
    records = (record for place in run.nodes.iterdir() for record in read_records(place / "segments"))
    return [record for record in records if record["kind"] == kind]


def alone(number: int, scene: Scene, recogniser: Recogniser) -> list[tuple[str | None, float, float]]:
    """Who is where in a frame, without a network."""
    image = decode_image(encode_jpeg(scene.picture(number), QUALITY))
    return [
        (face.person, face.box.x, face.box.y)
        for face in recogniser.recognise(image, shared_detector().detect(image))
    ]


def test_every_frame_is_seen_as_on_one_machine(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(
        tmp_path, backend="auto", query=QUERY, placement=PLACEMENT, warmup="0s", duration="8s"
    )
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode in (0, 3), ended.stderr
    assert "Backend netns: " in ended.stderr
    assert own_reasons(run) == []
    (version,) = json.loads(run.manifest.read_text())["apps"]["query"]["galleries"]
    (shipped,) = (run.path / "galleries").iterdir()
    gallery = load_gallery(shipped)
    assert gallery.version == version
    seen = of_kind(run, "faces_seen")
    assert len(seen) >= 20
    assert {record["gallery"] for record in seen} == {version}
    scene = Scene(SceneSettings(persons=PERSONS, enrolled=ENROLLED))
    recogniser = Recogniser(gallery)
    for record in seen:
        faces = msgspec.convert(record["faces"], list[FaceRecord])
        told = [(face.person, face.x, face.y) for face in faces]
        assert told == alone(record["frame"], scene, recogniser)
    kept = sorted(path.name for path in (run.nodes / "e" / "frames" / "screen-0").iterdir())
    assert len(kept) == 4 and kept[-1] == "latest.jpg"
    assert of_kind(run, "operator_fault") == []


def test_another_gallery_than_the_planned_one_fails_the_run_with_one_reason(
    tmp_path: Path, run: RunDirectory
) -> None:
    dataflow = {
        "operators": {
            "camera": {"kind": "synthetic_scene", "rate": 5},
            "recognise": {"kind": "recognise_faces", "after": ["camera"], "version": "0123456789abcdef"},
            "screen": {"kind": "show_faces", "after": ["recognise"]},
        }
    }
    nodes = {"camera": ["a"], "recognise": ["b"], "screen": ["e"]}
    placement = {"policy": "explicit", "nodes": nodes}
    file = experiment_file(tmp_path, backend="netns", query=dataflow, placement=placement, duration="2s")
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode == 1, ended.stderr
    (reason,) = own_reasons(run)
    assert "recognise wants version 0123456789abcdef of its gallery" in reason
