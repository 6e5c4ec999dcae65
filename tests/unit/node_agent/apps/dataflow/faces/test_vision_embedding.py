"""Embeddings are dlib's own numbers, do not depend on company, and tell people apart; so does enrolment."""

import numpy as np
import pytest

from node_agent.apps.dataflow.faces.alignment import SIDE, align
from node_agent.apps.dataflow.faces.detection import Detector, shared_detector
from node_agent.apps.dataflow.faces.embedding import shared_embedder
from node_agent.apps.dataflow.faces.enrolment import enrol, enrol_image
from node_agent.apps.dataflow.faces.frames import UNKNOWN
from node_agent.apps.dataflow.faces.gallery import BadGallery, Gallery
from node_agent.apps.dataflow.faces.pixels import BadImage, decode_image, encode_jpeg, encode_png
from node_agent.apps.dataflow.faces.recognition import Method, Recogniser
from tests.unit.orl import frame, portrait


def gallery(*persons: int, pictures: int = 3) -> Gallery:
    return Gallery(tuple(enrol_image(f"s{p}", portrait(p, n)) for p in persons for n in range(pictures)))


def test_the_numbers_are_those_of_dlib() -> None:
    """What dlib 20.0.1 computes for the same pattern with the same weights."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    red, green, blue = (x * 5 + y * 3) % 256, (x * y) % 256, (x + 2 * y) % 256
    (numbers,) = shared_embedder().embed_crops([np.stack([blue, green, red], axis=2).astype(np.uint8)])
    first = [-0.08582, 0.09481, 0.07311, -0.06643, -0.11615, -0.0365, -0.04273, 0.04211]
    assert np.allclose(numbers[:8], first, atol=2e-5)
    assert np.allclose(numbers[-4:], [0.03695, -0.02917, -0.02498, 0.01606], atol=2e-5)
    assert np.linalg.norm(numbers) == pytest.approx(1.37335, abs=2e-5)


def test_a_face_has_the_same_numbers_alone_and_in_company() -> None:
    image = frame(1, 2, 3)
    faces = shared_detector().detect(image)
    together = shared_embedder().embed(image, faces)
    assert together.shape == (3, 128) and together.dtype == np.float32
    alone = [shared_embedder().embed(image, [face])[0] for face in faces]
    assert np.array_equal(together, np.stack(alone))


def test_no_faces_have_no_embeddings() -> None:
    assert shared_embedder().embed(frame(1), ()).shape == (0, 128)


@pytest.mark.parametrize("method", ["embedding", "lbph"])
def test_persons_are_known_again_and_strangers_are_not(method: Method) -> None:
    recogniser = Recogniser(gallery(1, 2, 3), method)
    image = frame(1, 2, 7, picture=5)
    faces = recogniser.recognise(image, shared_detector().detect(image))
    named = [face.person for face in sorted(faces, key=lambda face: face.box.x)]
    assert named[2] == UNKNOWN
    # LBPH knows fewer faces for sure, but takes nobody for somebody else.
    assert named[:2] == ["s1", "s2"] if method == "embedding" else set(named) <= {"s1", "s2", UNKNOWN}


def test_a_detector_without_landmarks_is_enough_to_know_a_person() -> None:
    image = frame(2, 3, picture=5)
    faces = Detector("haar").detect(image)
    assert all(face.landmarks == () for face in faces)
    assert {face.person for face in Recogniser(gallery(1, 2, 3)).recognise(image, faces)} == {"s2", "s3"}


def test_a_wider_threshold_names_the_nearest_person() -> None:
    image = frame(7)
    (face,) = Recogniser(gallery(1, 2), threshold=2.0).recognise(image, shared_detector().detect(image))
    assert face.person in {"s1", "s2"} and face.distance is not None and face.distance > 0.45


def test_crops_that_travelled_are_named_as_the_whole_picture_is() -> None:
    recogniser = Recogniser(gallery(1, 2))
    image = frame(1, 2, picture=4)
    faces = shared_detector().detect(image)
    crops = [decode_image(encode_png(align(image, face))) for face in faces]
    assert recogniser.recognise_crops(faces, crops) == recogniser.recognise(image, faces)
    with pytest.raises(BadImage, match="150 × 150"):
        recogniser.recognise_crops(faces, [crop[:20, :20] for crop in crops])


def test_enrolment_takes_picture_files_of_one_face() -> None:
    assert enrol("Ann", encode_png(portrait(1))) == enrol_image("Ann", portrait(1))
    assert enrol("Ann", encode_jpeg(frame(1))).person == "Ann"
    with pytest.raises(BadImage, match="no faces found"):
        enrol("Ann", encode_png(np.full((200, 200, 3), 90, np.uint8)))
    with pytest.raises(BadImage, match="2 faces found"):
        enrol("Ann", encode_png(frame(1, 2)))
    with pytest.raises(BadGallery, match="name"):
        enrol(" Ann", encode_png(portrait(1)))
