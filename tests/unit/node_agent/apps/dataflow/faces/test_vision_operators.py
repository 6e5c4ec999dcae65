"""Detection, recognition, correlation and heat maps on frames, with real faces; and frames that are none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from node_agent.apps.dataflow.events import OperatorFault
from node_agent.apps.dataflow.faces.frames import UNKNOWN, Box, Face, Frame, decode_frame, encode_frame
from node_agent.apps.dataflow.faces.gallery import save_gallery
from node_agent.apps.dataflow.faces.heat import HeatMap, decode_heat, encode_heat
from node_agent.apps.dataflow.faces.operators import RECOGNISE_FACES
from node_agent.apps.dataflow.faces.params import RecogniseParams
from node_agent.apps.dataflow.faces.pixels import decode_image, encode_jpeg
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings
from node_agent.apps.dataflow.faces.scene_gallery import scene_gallery
from node_agent.apps.dataflow.operators.registry import OperatorUnusable
from tests.unit.video_worlds import Bench

# Fewer persons than by default: the gallery is made here.
SETTINGS = SceneSettings(seed=11, persons=6, enrolled=2, strangers=0.4, stay=10)
SCENE = Scene(SETTINGS)
WHOLE = encode_jpeg(SCENE.picture(3))
GALLERY: dict[str, Any] = {"persons": 6, "enrolled": 2}


def picture(number: int) -> bytes:
    return encode_frame(Frame(number, 320, 240, encode_jpeg(SCENE.picture(number))))


def named(frame: Frame) -> list[str | None]:
    """From left to right."""
    return [face.person for face in sorted(frame.faces, key=lambda face: face.box.x)]


def expected(number: int) -> list[str]:
    truth = sorted(SCENE.truth(number), key=lambda shown: shown.box.x)
    return [person if person in SCENE.persons_of_interest else UNKNOWN for person, _ in truth]


@pytest.mark.parametrize("forward", ["frames", "crops"])
def test_faces_are_found_and_named_whether_frames_travel_or_crops(forward: str) -> None:
    detect, recognise = Bench("detect_faces", forward=forward), Bench("recognise_faces", **GALLERY)
    right = told = 0
    for number in range(0, 100, 5):
        [found] = detect.process(picture(number))
        assert bool(decode_frame(found).image) == (forward == "frames")
        assert all(bool(face.crop) == (forward == "crops") for face in decode_frame(found).faces)
        [recognised] = recognise.process(found)
        frame = decode_frame(recognised)
        assert (frame.number, frame.gallery) == (number, scene_gallery(6, 2).version)
        right += sum(a == b for a, b in zip(named(frame), expected(number), strict=True))
        told += len(frame.faces)
    assert told > 20 and right >= 0.97 * told
    assert detect.events == recognise.events == []


def test_crops_take_less_than_frames_and_positions_next_to_nothing() -> None:
    sizes = [
        sum(len(Bench("detect_faces", forward=forward).process(picture(n))[0]) for n in (3, 13, 23))
        for forward in ("frames", "crops", "positions")
    ]
    assert sizes[0] > 1.2 * sizes[1] and sizes[1] > 10 * sizes[2]


def test_both_methods_name_faces() -> None:
    [found] = Bench("detect_faces").process(picture(3))
    for method in ("embedding", "lbph"):
        [recognised] = Bench("recognise_faces", method=method, threshold=1000.0, **GALLERY).process(found)
        assert all(person in SCENE.persons_of_interest for person in named(decode_frame(recognised)))


def test_a_gallery_from_a_file_gives_the_same_names(tmp_path: Path) -> None:
    save_gallery(scene_gallery(6, 2), tmp_path / "persons.gallery")
    [found] = Bench("detect_faces").process(picture(3))
    from_file = Bench("recognise_faces", directory=tmp_path, gallery="persons.gallery").process(found)
    assert from_file == Bench("recognise_faces", **GALLERY).process(found)


def test_work_takes_modelled_time_on_the_nodes_core() -> None:
    detect = Bench("detect_faces", cpu=0.5)
    detect.process(picture(3))
    assert detect.world.loop.time() == pytest.approx(0.5)
    for faces in (0, 1, 3):
        recognise = Bench("recognise_faces", cpu=0.5, **GALLERY)
        recognise.process(
            encode_frame(Frame(3, 320, 240, WHOLE, (Face(Box(9, 9, 99, 99), (), 1.0),) * faces))
        )
        assert recognise.world.loop.time() == pytest.approx(0.5 * faces)


BROKEN = {
    "cut short": Frame(1, 320, 240, WHOLE[: len(WHOLE) // 2]),
    "empty": Frame(1, 320, 240, b""),
    "no picture": Frame(1, 320, 240, b"hello"),
    "one pixel": Frame(1, 1, 1, encode_jpeg(np.zeros((1, 1, 3), np.uint8))),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("kind", ["detect_faces", "recognise_faces"])
def test_a_broken_picture_passes_unannotated_and_the_next_is_as_ever(kind: str, what: str) -> None:
    bench = Bench(kind, **(GALLERY if kind == "recognise_faces" else {}))
    frame = BROKEN[what]
    if kind == "recognise_faces":
        frame = Frame(frame.number, frame.width, frame.height, frame.image, (Face(Box(0, 0, 9, 9), (), 1.0),))
    [passed] = bench.process(encode_frame(frame))
    if what != "one pixel":
        assert decode_frame(passed) == frame
        [fault] = bench.of(OperatorFault)
        assert fault.reason.startswith("bad_image: ") and fault.count == 1
    assert len(bench.process(picture(3))) == 1


@pytest.mark.parametrize("kind", ["detect_faces", "recognise_faces"])
def test_what_is_no_frame_is_dropped_and_counted(kind: str) -> None:
    bench = Bench(kind, **(GALLERY if kind == "recognise_faces" else {}))
    zero = encode_frame(Frame(1, 0, 0, b""))
    assert len(bench.process(b"junk", picture(3), zero)) == 1
    assert [fault.count for fault in bench.of(OperatorFault)] == [1, 2]


def test_a_frame_says_the_size_that_its_picture_has() -> None:
    [found] = Bench("detect_faces").process(encode_frame(Frame(1, 999, 999, WHOLE)))
    assert (decode_frame(found).width, decode_frame(found).height) == (320, 240)


def test_grey_pictures_are_as_good_as_coloured_ones() -> None:
    grey = encode_jpeg(np.ascontiguousarray(SCENE.picture(3)[:, :, :1]))
    [found] = Bench("detect_faces").process(encode_frame(Frame(3, 320, 240, grey)))
    assert len(decode_frame(found).faces) == len(SCENE.truth(3))


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("recognise_faces", {"gallery": "none.gallery"}, "none.gallery: No such file"),
        ("recognise_faces", {"gallery": "junk"}, "junk: not a gallery"),
    ],
)
def test_what_is_missing_at_the_start_is_one_clear_error(
    kind: str, params: dict[str, object], message: str, tmp_path: Path
) -> None:
    (tmp_path / "junk").write_bytes(b"\x93junk")
    with pytest.raises(OperatorUnusable, match=message):
        Bench(kind, directory=tmp_path, **params)


def test_frames_of_several_cameras_side_by_side() -> None:
    left, right = (Scene(SceneSettings(seed=11, view=view)) for view in (0, 1))
    ada = Face(Box(10, 20, 30, 40), ((1.0, 2.0),), 0.9, "Ada", 0.3)
    bob = Face(Box(50, 60, 30, 40), (), 0.9, "Bob", 0.3)
    frames = [
        Frame(5, 320, 240, encode_jpeg(left.picture(5), 95), (ada,), "v1"),
        Frame(5, 320, 240, encode_jpeg(right.picture(5), 95), (ada, bob), "v1"),
    ]
    [joined] = Bench("correlate_frames").process(*map(encode_frame, frames))
    frame = decode_frame(joined)
    assert (frame.number, frame.width, frame.height, frame.gallery) == (5, 640, 240, "v1")
    assert [(face.person, face.box.x) for face in frame.faces] == [("Ada", 10), ("Ada", 330), ("Bob", 370)]
    assert frame.faces[1].landmarks == ((321.0, 2.0),)
    image = decode_image(frame.image).astype(int)
    assert np.abs(image[:, :320] - left.picture(5)).mean() < 5
    assert np.abs(image[:, 320:] - right.picture(5)).mean() < 5


def test_a_correlation_may_pass_on_only_what_all_cameras_see() -> None:
    def seen(*persons: str) -> bytes:
        faces = tuple(Face(Box(1, 1, 9, 9), (), 0.9, person) for person in persons)
        return encode_frame(Frame(1, 320, 240, b"", faces))

    bench = Bench("correlate_frames", matching=True)
    assert bench.process(seen("Ada", "Bob"), seen("Cyd")) == []
    assert bench.process(seen(UNKNOWN), seen(UNKNOWN)) == []
    assert len(bench.process(seen("Ada", "Bob"), seen("Bob"))) == 1
    assert bench.process(seen("Ada"), b"junk") == []
    assert [fault.count for fault in bench.of(OperatorFault)] == [1]


def test_heat_maps_count_faces_and_add_up() -> None:
    def at(*places: tuple[float, float]) -> bytes:
        faces = tuple(Face(Box(x - 5, y - 5, 10, 10), (), 0.9) for x, y in places)
        return encode_frame(Frame(1, 320, 240, b"", faces))

    bench = Bench("heat_map", columns=4, rows=2)
    [one] = bench.process(at((10, 10), (310, 230)), at((10, 10)), at())
    assert decode_heat(one) == HeatMap(4, 2, (2, 0, 0, 0, 0, 0, 0, 1), 3)
    [two] = bench.process(one, at((-50, 900)), b"junk", encode_heat(HeatMap(2, 2, (1, 1, 1, 1), 1)))
    assert decode_heat(two) == HeatMap(4, 2, (2, 0, 0, 0, 1, 0, 0, 1), 4)
    assert [fault.count for fault in bench.of(OperatorFault)] == [1, 2]


def test_a_heat_map_is_shown_as_a_picture(tmp_path: Path) -> None:
    bench = Bench("show_heat_map", directory=tmp_path, keep=1)
    heat = encode_heat(HeatMap(4, 2, (2, 0, 0, 0, 0, 0, 0, 1), 3))
    assert bench.process(heat, heat, b"junk") == []
    folder = tmp_path / "frames" / "tested-0"
    assert sorted(path.name for path in folder.iterdir()) == ["00000002.jpg", "latest.jpg"]
    image = decode_image((folder / "latest.jpg").read_bytes())
    assert image[10, 10].mean() > image[30, 70].mean() > image[10, 70].mean()
    assert [fault.count for fault in bench.of(OperatorFault)] == [1]


def test_a_recogniser_that_moved_with_its_gallery_names_alike() -> None:
    [found] = Bench("detect_faces").process(picture(3))
    here, there = Bench("recognise_faces", **GALLERY), Bench("recognise_faces", **GALLERY)
    params = RecogniseParams(**GALLERY)
    assert RECOGNISE_FACES.state is not None and RECOGNISE_FACES.restore is not None
    state = RECOGNISE_FACES.state(params, here.context)
    assert state == scene_gallery(6, 2).encode()
    there.made = RECOGNISE_FACES.restore(params, there.context, state)
    assert there.process(found) == here.process(found)
    with pytest.raises(OperatorUnusable, match=r"damaged|not a gallery"):
        RECOGNISE_FACES.restore(params, there.context, state[:-1] + b"?")
