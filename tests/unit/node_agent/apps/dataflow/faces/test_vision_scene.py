"""The synthetic scene: repeatable, and what it says is in a picture is there."""

from itertools import combinations

import numpy as np
import pytest

from node_agent.apps.dataflow.faces.detection import shared_detector
from node_agent.apps.dataflow.faces.frames import Box
from node_agent.apps.dataflow.faces.people import DrawnPeople, OrlPeople, People, find_people
from node_agent.apps.dataflow.faces.pixels import Image, decode_image, encode_jpeg
from node_agent.apps.dataflow.faces.scene import Scene, SceneSettings

MANY = range(0, 2000, 7)


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    width = max(0.0, min(a.x + a.width, b.x + b.width) - max(a.x, b.x))
    height = max(0.0, min(a.y + a.height, b.y + b.height) - max(a.y, b.y))
    both = width * height
    return both / (a.width * a.height + b.width * b.height - both)


class Watched:
    """People who remember which of their pictures were looked at."""

    def __init__(self, people: People) -> None:
        self.kind, self.face, self.pictures = people.kind, people.face, people.pictures
        self.looked_at: list[tuple[str, int]] = []
        self._people = people

    def picture(self, name: str, number: int) -> Image:
        self.looked_at.append((name, number))
        return self._people.picture(name, number)


def test_a_frame_follows_from_settings_and_number_alone() -> None:
    one, other = Scene(SceneSettings(seed=3)), Scene(SceneSettings(seed=3))
    other.picture(5)
    for number in (99, 1, 40):
        assert np.array_equal(one.picture(number), other.picture(number))
        assert one.truth(number) == other.truth(number)
    assert not np.array_equal(one.picture(1), one.picture(2))
    assert not np.array_equal(one.picture(1), Scene(SceneSettings(seed=4)).picture(1))


@pytest.mark.parametrize(
    "settings",
    [
        SceneSettings(at_once=1),
        SceneSettings(at_once=2),
        SceneSettings(at_once=4, stay=10),
        SceneSettings(at_once=7, width=640, height=480),
        SceneSettings(at_once=3, width=480, height=160),
    ],
)
def test_faces_are_whole_in_view_and_apart_and_nobody_is_there_twice(settings: SceneSettings) -> None:
    scene = Scene(settings)
    for number in MANY:
        shown = scene.truth(number)
        for _, box in shown:
            assert box.x >= 0 and box.x + box.width <= settings.width
            assert box.y >= 0 and box.y + box.height <= settings.height
        assert all(overlap(a.box, b.box) == 0 for a, b in combinations(shown, 2))
        assert len({person for person, _ in shown}) == len(shown)
    assert scene.picture(33).shape == (settings.height, settings.width, 3)


def test_everybody_comes_by_and_cells_are_empty_at_times() -> None:
    scene = Scene(SceneSettings(strangers=0.5, stay=10))
    shown = [scene.truth(number) for number in range(8000)]
    assert {person for each in shown for person, _ in each} == set(find_people().pictures)
    assert {1, 2} <= {len(each) for each in shown} <= {0, 1, 2}


@pytest.mark.parametrize(("strangers", "expected"), [(0.0, {True}), (1.0, {False}), (0.5, {True, False})])
def test_the_share_of_strangers(strangers: float, expected: set[bool]) -> None:
    scene = Scene(SceneSettings(persons=10, strangers=strangers))
    assert scene.persons_of_interest == tuple(find_people().pictures)[:10]
    known = {person in scene.persons_of_interest for n in MANY for person, _ in scene.truth(n)}
    assert known == expected


def test_pictures_for_the_gallery_are_never_shown() -> None:
    people = Watched(find_people())
    scene = Scene(SceneSettings(persons=5, enrolled=4, stay=10), people)
    for number in MANY:
        scene.picture(number)
    shown = set(people.looked_at)
    people.looked_at.clear()
    assert len(list(scene.enrolment())) == 5 * 4
    assert shown and not shown & set(people.looked_at)


def test_views_show_the_same_people_elsewhere() -> None:
    left, right = (Scene(SceneSettings(seed=2, view=view)) for view in (0, 1))
    for number in MANY:
        assert [p for p, _ in left.truth(number)] == [p for p, _ in right.truth(number)]
    assert left.truth(20) != right.truth(20)


@pytest.mark.parametrize("people", [find_people(), DrawnPeople()], ids=["orl", "drawn"])
def test_the_detector_finds_exactly_the_faces_that_are_there(people: People) -> None:
    scene = Scene(SceneSettings(seed=6), people)
    for number in range(0, 200, 10):
        found = shared_detector().detect(decode_image(encode_jpeg(scene.picture(number))))
        shown = scene.truth(number)
        assert len(found) == len(shown)
        assert all(max(overlap(box, face.box) for face in found) > 0.5 for _, box in shown)


def test_the_photographs_are_installed_here_and_drawn_faces_stand_in_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(find_people(), OrlPeople)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    without = find_people.__wrapped__()
    assert isinstance(without, DrawnPeople)
    assert Scene(SceneSettings(), without).kind == "drawn"
    assert Scene(SceneSettings()).kind == "orl"


def test_settings_that_leave_nobody_or_no_room_are_refused() -> None:
    with pytest.raises(ValueError, match="12 people at once are too many for 320×240"):
        Scene(SceneSettings(at_once=12))
    with pytest.raises(ValueError, match="0 people left to show"):
        Scene(SceneSettings(enrolled=10))
    with pytest.raises(ValueError, match="there are 40 people, not 41"):
        Scene(SceneSettings(persons=41))
    with pytest.raises(ValueError, match="nobody is left to be a stranger"):
        Scene(SceneSettings(persons=40))
    assert len(Scene(SceneSettings(persons=40, strangers=0)).persons_of_interest) == 40
