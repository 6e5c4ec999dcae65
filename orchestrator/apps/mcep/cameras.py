"""What cameras see in a run: who is in a camera's view when, and the faces that it makes of its pictures.

Every client that is no camera has the face of one of Rove's people, in the order of clients. A camera takes a
picture of each of them in its view each time it reads. Pictures of friends by which they are known are others
than those that cameras take. Faces are found and turned into numbers when a run is planned, on this machine.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from node_agent.apps.mcep.faces import features_text
from node_agent.apps.mcep.sensing import Drive
from orchestrator.errors import BadInput

KNOWN, TAKEN = range(5), range(5, 10)
"""Pictures of a person: by which friends are known, and those that cameras take."""
EXTRA = "pip install 'rove-testbed[faces]'"
Filmed = dict[str, dict[int, tuple[int, ...]]]


def in_view(
    cameras: Mapping[str, Drive],
    people: Mapping[str, Drive],
    view: float,
    times: Callable[[str], Sequence[float]],
) -> dict[str, dict[int, list[str]]]:
    """By camera and number of its picture, who is in the square around it; ``times``: of its pictures."""
    found: dict[str, dict[int, list[str]]] = {}
    for camera, stand in cameras.items():
        here = stand.at(0.0)
        for number, t in enumerate(times(camera)):
            for person, drive in people.items():
                there = drive.at(t)
                if max(abs(there.x - here.x), abs(there.y - here.y)) <= view / 2:
                    found.setdefault(camera, {}).setdefault(number, []).append(person)
    return found


def faces_seen(
    seen: Mapping[str, Mapping[int, Sequence[str]]], everybody: Sequence[str]
) -> tuple[tuple[str, ...], Filmed]:
    """The faces that were found in pictures, and by camera and picture their numbers. A picture in which no
    face is found has none. Raises BadInput if faces cannot be looked for here."""
    table: dict[str, int] = {}
    filmed: Filmed = {}
    for camera, pictures in seen.items():
        for number, who in pictures.items():
            shown = (face_of(everybody.index(name), TAKEN[number % len(TAKEN)]) for name in who)
            numbers = tuple(table.setdefault(each, len(table)) for each in shown if each is not None)
            if numbers:
                filmed.setdefault(camera, {})[number] = numbers
    return tuple(table), filmed


def known_faces(name: str, everybody: Sequence[str]) -> tuple[str, ...]:
    """Raises BadInput."""
    found = (face_of(everybody.index(name), picture) for picture in KNOWN)
    return tuple(each for each in found if each is not None)


@cache
def face_of(person: int, picture: int) -> str | None:
    """The face of one of Rove's people in one of their pictures; None if none is found. Raises BadInput."""
    try:
        from node_agent.apps.dataflow.faces.enrolment import enrol_image
        from node_agent.apps.dataflow.faces.models import ModelMissing
        from node_agent.apps.dataflow.faces.people import find_people
        from node_agent.apps.dataflow.faces.pixels import BadImage
    except ImportError as error:
        raise BadInput(f"cameras need what finds faces, and {error.name} is missing: {EXTRA}") from error
    people = find_people()
    names = list(people.pictures)
    if person >= len(names):
        raise BadInput(f"there are faces of {len(names)} people, and more clients that are no cameras")
    try:
        return features_text(enrol_image("someone", people.picture(names[person], picture)).embedding)
    except BadImage:
        return None
    except ModelMissing as error:
        raise BadInput(str(error)) from error
