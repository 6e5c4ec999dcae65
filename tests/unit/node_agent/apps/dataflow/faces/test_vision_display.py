"""The screen: what it reports, what it draws, and which files it leaves."""

from pathlib import Path

import numpy as np
import pytest

from node_agent.apps.dataflow.events import OperatorFault
from node_agent.apps.dataflow.faces.display import (
    KNOWN_COLOUR,
    STRANGER_COLOUR,
    UNASKED_COLOUR,
    annotated,
    drawable,
)
from node_agent.apps.dataflow.faces.events import FaceRecord, FacesSeen
from node_agent.apps.dataflow.faces.frames import UNKNOWN, Box, Face, Frame, encode_frame
from node_agent.apps.dataflow.faces.params import folder_of
from node_agent.apps.dataflow.faces.pixels import Image, decode_image, encode_jpeg
from node_agent.apps.dataflow.operators.registry import OperatorUnusable
from orchestrator.apps.dataflow.faces.face_section import chosen_pictures
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.video_worlds import Bench

BLANK = encode_jpeg(np.full((240, 320, 3), 128, np.uint8), 95)


def frame(number: int = 1, *faces: Face, image: bytes = BLANK) -> Frame:
    return Frame(number, 320, 240, image, faces, "v1")


def has(image: Image, colour: tuple[int, int, int]) -> bool:
    return bool((np.abs(image.astype(int) - colour).max(axis=2) < 3).any())


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "frames" / "tested-0").iterdir())


def test_what_is_seen_is_reported_with_its_latency() -> None:
    bench = Bench("show_faces")
    known = Face(Box(10, 20, 30, 40), (), 0.9, "Ada", 0.3)
    stranger = Face(Box(100, 20, 30, 40), (), 0.8, UNKNOWN, 0.7)
    bench.world.loop.run_until_ns(3_000_000_000)
    assert bench.process(encode_frame(frame(7, known, stranger)), born_ns=1_000_000_000) == []
    faces = (
        FaceRecord("Ada", 10, 20, 30, 40, 0.9, 0.3),
        FaceRecord("", 100, 20, 30, 40, 0.8, 0.7),
    )
    assert bench.events == [FacesSeen("tested/0", "camera/0", 1, 7, "v1", 2_000_000_000, faces)]


@pytest.mark.parametrize(
    ("person", "colour"), [("Ada", KNOWN_COLOUR), (UNKNOWN, STRANGER_COLOUR), (None, UNASKED_COLOUR)]
)
def test_boxes_say_who_is_known(person: str | None, colour: tuple[int, int, int]) -> None:
    image = annotated(frame(1, Face(Box(50, 60, 80, 90), (), 0.9, person, 0.2)))
    assert has(image[60:150, 48:132], colour)
    assert tuple(image[61, 90]) == colour and tuple(image[105, 51]) == colour
    assert not has(annotated(frame()), colour)


@pytest.mark.parametrize(
    "box", [Box(-20, -30, 60, 60), Box(290, 200, 80, 90), Box(-500, 10, 20, 20), Box(0, 0, 320, 240)]
)
@pytest.mark.parametrize("person", ["Ada", "Zoë Müller-Lüdenscheidt of the long name", "\u4e2d\u6587", None])
def test_any_box_and_any_name_can_be_drawn(box: Box, person: str | None) -> None:
    assert annotated(frame(1, Face(box, (), 0.9, person, 0.2))).shape == (240, 320, 3)


@pytest.mark.parametrize(
    ("name", "label"),
    [("Zoë", "Zoe"), ("Zoe\u0308", "Zoe"), ("\u4e2d\u6587", "??"), ("Li \u674e", "Li ?"), ("\ud55c", "?")],
)
def test_what_the_font_lacks_is_a_question_mark(name: str, label: str) -> None:
    assert drawable(name) == label


def test_faces_that_travelled_alone_are_shown_where_they_were() -> None:
    crop = encode_jpeg(np.full((150, 150, 3), 250, np.uint8))
    faces = [Face(Box(50, 60, 80, 90), (), 0.9, crop=crop), Face(Box(300, -10, 80, 90), (), 0.9, crop=crop)]
    image = annotated(frame(1, *faces, image=b""))
    assert image.shape == (240, 320, 3)
    assert image[105, 90].min() > 240 and image[30, 310].min() > 240
    assert image[200, 200].max() < 60


def test_every_nth_frame_is_kept_and_the_newest(tmp_path: Path) -> None:
    bench = Bench("show_faces", directory=tmp_path, every=3, keep=2, refresh=0.001)
    for number in range(1, 12):
        bench.process(encode_frame(frame(number, Face(Box(number, 9, 80, 80), (), 0.9))))
    assert files(tmp_path) == ["00000007.jpg", "00000010.jpg", "latest.jpg"]
    latest = decode_image((tmp_path / "frames" / "tested-0" / "latest.jpg").read_bytes())
    assert latest.shape == (240, 320, 3)
    assert bench.of(OperatorFault) == []
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "frames").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}, "pictures of people are for the user alone"
    assert (tmp_path / "frames").stat().st_mode & 0o777 == 0o700


def test_a_screen_that_starts_again_keeps_to_its_bound(tmp_path: Path) -> None:
    for first in (1, 10):
        bench = Bench("show_faces", directory=tmp_path, every=1, keep=3)
        bench.process(*(encode_frame(frame(number)) for number in range(first, first + 2)))
    assert files(tmp_path) == ["00000002.jpg", "00000010.jpg", "00000011.jpg", "latest.jpg"]


def test_the_newest_frame_is_not_drawn_more_often_than_asked(tmp_path: Path) -> None:
    bench = Bench("show_faces", directory=tmp_path, keep=0, refresh=10)
    bench.process(encode_frame(frame()))
    latest = tmp_path / "frames" / "tested-0" / "latest.jpg"
    latest.unlink()
    bench.process(encode_frame(frame()))
    assert files(tmp_path) == []
    bench.world.loop.run_until_ns(10_000_000_000)
    bench.process(encode_frame(frame()))
    assert files(tmp_path) == ["latest.jpg"]


def test_what_cannot_be_shown_is_reported_and_the_screen_goes_on(tmp_path: Path) -> None:
    bench = Bench("show_faces", directory=tmp_path, every=1)
    bench.process(b"no frame", encode_frame(frame(1, image=BLANK[:200])), encode_frame(frame(2)))
    assert [fault.reason.partition(":")[0] for fault in bench.of(OperatorFault)] == ["bad_frame", "bad_image"]
    assert [seen.frame for seen in bench.of(FacesSeen)] == [1, 2]
    folder = tmp_path / "frames" / "tested-0"
    assert files(tmp_path) == ["00000002.jpg"]
    (folder / "00000002.jpg").unlink()
    folder.rmdir()
    bench.process(encode_frame(frame(3)))
    assert bench.of(OperatorFault)[-1].reason.startswith("not_written")


def test_a_place_that_cannot_be_written_to_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "frames").write_text("in the way")
    with pytest.raises(OperatorUnusable, match="frames"):
        Bench("show_faces", directory=tmp_path)


def test_sinks_of_two_applications_on_one_node_keep_their_pictures_apart(tmp_path: Path) -> None:
    folders = [folder_of(app, "screen/0") for app in ("query", "one", "two")]
    assert folders == ["screen-0", "one.screen-0", "two.screen-0"]
    run = RunDirectory(tmp_path)
    for number, folder in enumerate(folders, start=1):
        place = tmp_path / "nodes" / "e" / "frames" / folder
        place.mkdir(parents=True)
        (place / f"{number:06}.jpg").write_bytes(folder.encode())
    for app, folder in zip(("query", "one", "two"), folders, strict=True):
        assert [content.decode() for _, content in chosen_pictures(run, app)] == [folder]
