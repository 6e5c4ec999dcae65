"""Faces are found where they are, by every detector that is there, and nowhere else."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from node_agent.apps.dataflow.faces.alignment import PLACES, SIDE, align, similarity
from node_agent.apps.dataflow.faces.detection import Detector, shared_detector
from node_agent.apps.dataflow.faces.frames import Box, Face
from node_agent.apps.dataflow.faces.models import ModelMissing
from node_agent.apps.dataflow.faces.pixels import BadImage
from tests.unit.orl import frame


def centre(face: Face) -> tuple[float, float]:
    return face.box.x + face.box.width / 2, face.box.y + face.box.height / 2


def test_a_face_has_a_box_with_eyes_above_nose_above_mouth_in_it() -> None:
    (face,) = Detector().detect(frame(1))
    right_eye, left_eye, nose, right_mouth, left_mouth = face.landmarks
    assert right_eye[0] < nose[0] < left_eye[0] and right_mouth[0] < left_mouth[0]
    assert max(right_eye[1], left_eye[1]) < nose[1] < min(right_mouth[1], left_mouth[1])
    assert all(
        face.box.x < x < face.box.x + face.box.width and face.box.y < y < face.box.y + face.box.height
        for x, y in face.landmarks
    )
    assert 0.7 <= face.score <= 1 and face.person is None


@pytest.mark.parametrize("kind", ["yunet", "haar"])
def test_all_faces_of_a_picture_are_found_whatever_its_size(kind: str) -> None:
    detector = Detector(kind)  # type: ignore[arg-type]
    for persons in ((1,), (2, 3, 5), (4,)):
        faces = detector.detect(frame(*persons))
        places = sorted(int(centre(face)[0] // 160) for face in faces)
        assert places == list(range(len(persons)))
        assert all(70 < centre(face)[1] < 190 for face in faces)


@pytest.mark.parametrize("kind", ["yunet", "haar"])
def test_an_empty_wall_has_no_faces(kind: str) -> None:
    assert Detector(kind).detect(np.full((240, 320, 3), 120, np.uint8)) == ()  # type: ignore[arg-type]


def test_a_cascade_that_opencv_does_not_bring_is_named() -> None:
    with pytest.raises(ModelMissing, match=r"detector lbp: .*use detector yunet"):
        Detector("lbp")


@pytest.mark.parametrize("shape", [(0, 0, 3), (240, 320), (0, 320, 3)])
def test_a_frame_that_is_no_picture_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadImage):
        Detector().detect(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (300, 2), (32, 32)])
def test_nobody_is_in_tiny_pictures(shape: tuple[int, int]) -> None:
    grain = np.random.default_rng(1).integers(0, 255, (*shape, 3)).astype(np.uint8)
    assert shared_detector().detect(grain) == ()


def test_threads_may_share_a_detector_and_get_the_same_answers() -> None:
    pictures = [frame(person) for person in (1, 2, 3)] + [frame(1, 2)]
    alone = [shared_detector().detect(picture) for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(shared_detector().detect, pictures * 3))
    assert together == alone * 3


def test_similarity_finds_turn_scale_and_shift() -> None:
    angle, scale = 0.3, 1.7
    matrix = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = PLACES @ matrix.T + (12.0, -5.0)
    found = similarity(PLACES, moved)
    assert np.allclose(found, np.hstack([matrix, [[12.0], [-5.0]]]))


def test_faces_come_out_upright_at_one_place() -> None:
    """A face in the picture and the same face upside down give the same crop."""
    image = frame(1)
    (face,) = shared_detector().detect(image)
    height, width = image.shape[:2]
    turned = np.ascontiguousarray(image[::-1, ::-1])
    points = tuple((width - 1 - x, height - 1 - y) for x, y in face.landmarks)
    crop = align(image, face)
    again = align(turned, Face(face.box, points, face.score))
    assert crop.shape == (SIDE, SIDE, 3)
    assert np.abs(crop.astype(int) - again).mean() < 1


@pytest.mark.parametrize("points", [((1.0, 1.0),) * 5, ((1.0, 2.0),) * 3, ((float("nan"), 0.0),) * 5])
def test_landmarks_that_are_no_face_are_refused(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(BadImage):
        align(frame(1), Face(Box(0, 0, 10, 10), points, 1.0))
