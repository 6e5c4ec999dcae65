"""Sources of video: when pictures are taken, what is told of them, and what happens when none come."""

import asyncio
from pathlib import Path

import cv2
import numpy as np
import pytest

from node_agent.apps.dataflow.events import OperatorFault
from node_agent.apps.dataflow.faces.adaptation import LATE_FRAMES, STEPS, TIMELY_FRAMES, Adaptation
from node_agent.apps.dataflow.faces.events import FacesTrue, VideoSource
from node_agent.apps.dataflow.faces.frames import Frame, decode_frame
from node_agent.apps.dataflow.faces.people import find_people
from node_agent.apps.dataflow.faces.pixels import Image, decode_image, encode_jpeg, encode_png
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings
from node_agent.apps.dataflow.faces.sources import sized
from node_agent.apps.dataflow.operators.registry import OperatorUnusable
from tests.unit.video_worlds import Bench


def frames(taken: list[tuple[float, bytes | None]]) -> list[Frame]:
    return [decode_frame(payload) for _, payload in taken if payload is not None]


def grey(level: int, width: int = 64, height: int = 48) -> Image:
    return np.full((height, width, 3), level, np.uint8)


def video(path: Path, levels: list[int]) -> Path:
    """Motion JPEG, a picture for each level of grey."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for level in levels:
        writer.write(grey(level))
    writer.release()
    return path


def levels(taken: list[tuple[float, bytes | None]]) -> list[int]:
    """As in ``video``, to the nearest ten: JPEG is not exact."""
    return [round(float(decode_image(frame.image).mean()) / 10) * 10 for frame in frames(taken)]


def test_a_fixed_rate_does_not_drift() -> None:
    bench = Bench("synthetic_scene", rate=8, cpu=0.01, limit=20)
    taken = bench.take(21)
    assert taken.pop()[1] is None
    assert [at for at, _ in taken] == pytest.approx([0.01 + n / 8 for n in range(20)])
    assert [frame.number for frame in frames(taken)] == list(range(1, 21))


def test_the_scene_tells_what_its_frames_show() -> None:
    bench = Bench("synthetic_scene", seed=5, width=400, height=300, quality=90, limit=30)
    taken = frames(bench.take(30))
    scene = Scene(SceneSettings(seed=5, width=400, height=300))
    assert [decode_image(frame.image).shape for frame in taken] == [(300, 400, 3)] * 30
    for frame, told in zip(taken, bench.of(FacesTrue), strict=True):
        assert frame.image == encode_jpeg(scene.picture(frame.number), 90)
        assert (told.origin, told.frame) == ("tested/0", frame.number)
        boxes = [(face.person, face.x, face.y, face.width, face.height) for face in told.faces]
        truth = scene.truth(frame.number)
        assert boxes == [(p, box.x, box.y, box.width, box.height) for p, box in truth]
    assert bench.of(VideoSource) == [VideoSource("tested/0", "synthetic scene of orl faces", 400, 300, 90)]


def test_same_seed_same_stream() -> None:
    assert Bench("synthetic_scene", seed=2).take(5) == Bench("synthetic_scene", seed=2).take(5)


class Outlet:
    def __init__(self) -> None:
        self.open = asyncio.Event()

    def has_room(self) -> bool:
        return self.open.is_set()


def test_a_camera_that_saturates_takes_a_picture_whenever_it_is_asked() -> None:
    bench = Bench("synthetic_scene", rate="saturate", adapt=True, cpu=0.01)
    bench.context.outlet = Outlet()
    assert [at for at, _ in bench.take(3)] == pytest.approx([0.01, 0.02, 0.03])
    assert [told.quality for told in bench.of(VideoSource)] == [80], "there is no rate to keep up with"


def test_quality_and_size_follow_the_path_if_they_may() -> None:
    bench = Bench("synthetic_scene", adapt=True, limit=LATE_FRAMES * len(STEPS), quality=80)
    bench.context.outlet = Outlet()
    taken = frames(bench.take(LATE_FRAMES * len(STEPS)))
    assert (taken[-1].width, taken[-1].height) == (192, 144)
    assert decode_image(taken[-1].image).shape == (144, 192, 3)
    assert [told.quality for told in bench.of(VideoSource)] == [80, 60, 40, 40, 32]
    last = bench.of(FacesTrue)[-1]
    truth = Scene(SceneSettings()).truth(last.frame)
    assert [face.x for face in last.faces] == pytest.approx([box.x * 0.6 for _, box in truth])


def test_adaptation_is_off_unless_asked_for() -> None:
    bench = Bench("synthetic_scene")
    bench.context.outlet = Outlet()
    assert len({frame.width for frame in frames(bench.take(20))}) == 1


def test_adaptation_goes_down_fast_and_up_slowly() -> None:
    state = Adaptation()
    for _ in range(LATE_FRAMES):
        state = state.after(in_time=False)
    assert state == Adaptation(1)
    for _ in range(TIMELY_FRAMES - 1):
        state = state.after(in_time=True)
    assert state.level == 1
    assert state.after(in_time=False).after(in_time=True).level == 1
    assert state.after(in_time=True) == Adaptation(0)
    for _ in range(1000):
        state = state.after(in_time=False)
    assert state.level == len(STEPS) - 1
    for _ in range(1000):
        state = state.after(in_time=True)
    assert state.level == 0


def test_a_folder_of_pictures_in_order_and_again(tmp_path: Path) -> None:
    for name, level in (("b.png", 200), ("a.JPG", 100)):
        encode = encode_png if name.endswith("png") else encode_jpeg
        (tmp_path / name).write_bytes(encode(grey(level)))
    (tmp_path / "notes.txt").write_text("no picture")
    assert levels(Bench("pictures", path=str(tmp_path)).take(5)) == [100, 200, 100, 200, 100]
    once = Bench("pictures", path=str(tmp_path), repeat=False).take(3)
    assert levels(once) == [100, 200] and once[-1][1] is None


def test_a_picture_that_cannot_be_read_is_skipped_and_reported(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_bytes(encode_jpeg(grey(100)))
    (tmp_path / "2.jpg").write_bytes(encode_jpeg(grey(150))[:100])
    (tmp_path / "3.png").write_bytes(b"")
    (tmp_path / "4.jpg").write_bytes(encode_jpeg(grey(200)))
    bench = Bench("pictures", path=".", directory=tmp_path)
    assert levels(bench.take(3)) == [100, 200, 100]
    assert [fault.count for fault in bench.of(OperatorFault)] == [1, 2]
    assert [fault.reason for fault in bench.of(OperatorFault)] == [
        "bad_image: 2.jpg: JPEG is cut short",
        "bad_image: 3.png: empty picture",
    ]


def test_pictures_of_any_kind_become_colour_pictures_of_the_size_asked_for(tmp_path: Path) -> None:
    person = next(iter(find_people().pictures))
    colour = find_people().picture(person, 0)
    kinds = {
        "1.png": cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY),
        "2.png": cv2.cvtColor(colour, cv2.COLOR_BGR2BGRA),
        "3.png": colour.astype(np.uint16) * 256,
    }
    for name, pixels in kinds.items():
        cv2.imwrite(str(tmp_path / name), pixels)
    bench = Bench("pictures", path=str(tmp_path), width=120, height=80)
    assert [decode_image(frame.image).shape for frame in frames(bench.take(3))] == [(80, 120, 3)] * 3
    assert bench.of(OperatorFault) == []


def test_a_video_file_ends_or_begins_again(tmp_path: Path) -> None:
    path = video(tmp_path / "clip.avi", [50, 100, 150])
    once = Bench("video_file", path=str(path), repeat=False).take(4)
    assert levels(once) == [50, 100, 150] and once[-1][1] is None
    assert levels(Bench("video_file", path=str(path)).take(5)) == [50, 100, 150, 50, 100]


def test_a_video_that_breaks_off_is_reported_and_ends_or_begins_again(tmp_path: Path) -> None:
    whole = video(tmp_path / "clip.avi", [50, 100, 150, 200]).read_bytes()
    cut = tmp_path / "cut.avi"
    cut.write_bytes(whole[: whole.rindex(b"00dc", 0, whole.index(b"idx1"))])
    bench = Bench("video_file", path=str(cut), repeat=False)
    once = bench.take(4)
    assert levels(once) == [50, 100, 150] and once[-1][1] is None
    assert [fault.reason for fault in bench.of(OperatorFault)] == [
        "bad_image: cut.avi: picture 4 cannot be read"
    ]
    assert levels(Bench("video_file", path=str(cut)).take(5)) == [50, 100, 150, 50, 100]


def test_a_camera_that_stops_is_reported_and_opened_again(tmp_path: Path) -> None:
    # To OpenCV a file that has come to its end is a device that gives no more pictures.
    path = video(tmp_path / "camera.avi", [50, 100, 150])
    bench = Bench("camera", device=str(path), rate=10)
    before = bench.take(3)
    hidden = path.rename(tmp_path / "unplugged.avi")
    bench.world.loop.call_later(2, lambda: hidden.rename(path))
    after = bench.take(3)
    assert levels(before) == levels(after) == [50, 100, 150]
    faults = bench.of(OperatorFault)
    assert faults[0].reason == f"camera_lost: camera {path} gives no picture"
    assert [fault.count for fault in faults] == list(range(1, len(faults) + 1))
    assert 2 < len(faults) < 6, "waits longer and longer between two attempts"
    gap = after[2][0] - after[1][0]
    assert gap == pytest.approx(0.1), "what was missed is not made up for"


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("camera", {"device": "/dev/video99"}, "camera /dev/video99 cannot be opened"),
        ("video_file", {"path": "none.avi"}, "none.avi does not exist"),
        ("pictures", {"path": "nowhere"}, "nowhere: No such file"),
        ("pictures", {"path": "."}, "there is no picture in"),
        ("synthetic_scene", {"at_once": 12}, "12 people at once are too many"),
    ],
)
def test_a_source_without_anything_to_show_is_one_clear_error(
    kind: str, params: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(OperatorUnusable, match=message):
        Bench(kind, directory=tmp_path, **params)


def test_pictures_are_cut_and_not_distorted() -> None:
    image = np.zeros((100, 300, 3), np.uint8)
    image[40:60, 140:160] = 255  # a square in the middle
    seen = sized(image, 200, 200)[..., 0] > 127
    assert seen.shape == (200, 200)
    assert seen.any(axis=0).sum() == seen.any(axis=1).sum() == 40


def test_a_sliver_of_a_picture_can_be_made_a_picture() -> None:
    assert sized(np.zeros((2, 2, 3), np.uint8), 4096, 32).shape == (32, 4096, 3)
