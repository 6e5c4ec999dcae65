"""Defines how faces are evaluated: who is in which set, the frames they are shown in, and what counts as an
error.

Thresholds are computed from the development people alone, by one rule for both methods, and no probe is a
picture of the gallery. The protocol itself (who is in which set, five pictures each in the gallery, the size
of faces) was chosen with the results of both sets in view: it is no blind test. For that reason, figures of
smaller galleries and of the development people are printed beside the main ones.
"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import cv2
import numpy as np

from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.alignment import align, small_grey
from node_agent.apps.dataflow.faces.detection import Detector
from node_agent.apps.dataflow.faces.embedding import Embedder
from node_agent.apps.dataflow.faces.enrolment import enrol_image
from node_agent.apps.dataflow.faces.frames import Face
from node_agent.apps.dataflow.faces.gallery import Gallery, Sample, sample
from node_agent.apps.dataflow.faces.people import People
from node_agent.apps.dataflow.faces.pixels import Image, decode_image, encode_jpeg

DEVELOPMENT = tuple(f"s{number}" for number in range(1, 16))
EVALUATION = tuple(f"s{number}" for number in range(16, 41))
ENROLLED = range(5)  # the pictures of each person that make the gallery: the usual split of ORL
PROBES = range(5, 10)
WIDTH, HEIGHT, QUALITY = 320, 240, 80
FACE_WIDTHS = (100, 160)  # of a pasted portrait; the face is about four fifths of that


class View(NamedTuple):
    """A picture of a person in a frame of video."""

    person: str
    picture: int
    jpeg: bytes
    centre: tuple[float, float]


class Seen(NamedTuple):
    """What was found in a view: the face at the right place, and how many at wrong ones."""

    view: View
    found: Sample | None
    elsewhere: int


def views(people: People, persons: Iterable[str]) -> list[View]:
    return [_view(people, person, picture) for person in persons for picture in (*ENROLLED, *PROBES)]


def _view(people: People, person: str, picture: int) -> View:
    draw = random.Random(f"faces/{person}/{picture}")
    portrait = people.picture(person, picture)
    width = draw.randint(*FACE_WIDTHS)
    height = round(width * portrait.shape[0] / portrait.shape[1])
    x, y = draw.randint(0, WIDTH - width), draw.randint(0, HEIGHT - height)
    colours = np.array([[draw.randint(60, 190) for _ in range(3)] for _ in range(48)], np.uint8)
    frame = cv2.resize(colours.reshape(6, 8, 3), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    frame[y : y + height, x : x + width] = cv2.resize(
        portrait, (width, height), interpolation=cv2.INTER_CUBIC
    )
    jpeg = encode_jpeg(frame.astype(np.uint8), QUALITY)
    return View(person, picture, jpeg, (x + width / 2, y + height / 2))


def look(view: View, detector: Detector, embedder: Embedder) -> Seen:
    image = decode_image(view.jpeg)
    faces = detector.detect(image)
    here = [face for face in faces if _shows(face, view)]
    found = _described(view.person, align(image, here[0]), embedder) if here else None
    return Seen(view, found, len(faces) - len(here[:1]))


def _shows(face: Face, view: View) -> bool:
    box = face.box
    x, y = view.centre
    return box.x <= x <= box.x + box.width and box.y <= y <= box.y + box.height


def _described(person: str, crop: Image, embedder: Embedder) -> Sample:
    return sample(person, embedder.embed_crops([crop])[0], lbph.histogram(small_grey(crop, lbph.SIDE)))


def gallery_of(people: People, persons: Iterable[str], pictures: Iterable[int] = ENROLLED) -> Gallery:
    numbers = tuple(pictures)
    return Gallery(tuple(enrol_image(name, people.picture(name, n)) for name in persons for n in numbers))


class Answer(NamedTuple):
    """Who a face is taken for, and at which distance."""

    person: str
    distance: float


class Answers(NamedTuple):
    """``known``: probes of enrolled persons, with the truth; ``strangers``: everybody's pictures, each
    compared with the gallery without that person.
    """

    known: tuple[tuple[str, Answer], ...]
    strangers: tuple[Answer, ...]

    def rank1(self) -> float:
        return _share([answer.person == person for person, answer in self.known])

    def named(self, threshold: float) -> float:
        """Returns the share of enrolled persons' faces that get the right name."""
        right = [a.person == person and a.distance <= threshold for person, a in self.known]
        return _share(right)

    def false_accepts(self, threshold: float) -> float:
        return _share([answer.distance <= threshold for answer in self.strangers])


def ask(gallery: Gallery, seen: Sequence[Seen], method: str) -> Answers:
    """Recognises faces. Those that were not detected are the detector's errors and are not counted again."""
    without = {person: gallery.remove(person) for person in gallery.persons}
    described = [(each.view, each.found) for each in seen if each.found]
    known = (
        (view.person, _answer(gallery, face, method)) for view, face in described if view.picture in PROBES
    )
    strangers = (_answer(without[view.person], face, method) for view, face in described)
    return Answers(tuple(known), tuple(strangers))


def _answer(gallery: Gallery, face: Sample, method: str) -> Answer:
    if method == "embedding":
        person, distance = gallery.recognise(np.frombuffer(face.embedding, "<f4"), float("inf"))
    else:
        person, distance = gallery.recognise_histogram(np.frombuffer(face.histogram, np.uint8), float("inf"))
    assert distance is not None, "the gallery of a benchmark is not empty"
    return Answer(person, distance)


def _share(outcomes: list[bool]) -> float:
    return sum(outcomes) / len(outcomes)
