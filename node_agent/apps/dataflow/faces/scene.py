"""The synthetic scene: people move in front of a background, and it is known who is where.

A frame is a pure function of the settings and its number. The picture is divided into as many cells as people
may be in it at once; in each cell one visitor after the other moves about, wholly visible and alone.
"""

import random
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.frames import Box
from node_agent.apps.dataflow.faces.people import HEIGHT, WIDTH, People, find_people
from node_agent.apps.dataflow.faces.pixels import Image

PAUSE = 0.1
"""The share of time in which a cell is empty."""
MIN_SCALE = 0.8
"""Portraits smaller than this share of the original are not recognised reliably."""
_FEATHER = 5
_PAN = 96
"""How far the background moves to and fro, in pixels."""


class SceneSettings(Struct, frozen=True):
    """``at_once``: the most people at once. ``persons``: how many of them, from the first, are of interest;
    all others are strangers. ``strangers``: their share among the visitors. ``enrolled``: how many pictures
    of each person are for the gallery and never shown. ``stay``: frames until another visitor comes.

    ``seed`` decides who is there and when, ``view`` where and in front of what: cameras of one seed and
    different views see the same people at the same time, but not the same picture.
    """

    width: int = 320
    height: int = 240
    seed: int = 1
    view: int = 0
    at_once: int = 2
    persons: int = 20
    strangers: float = 0.3
    enrolled: int = 3
    stay: int = 50


class Shown(NamedTuple):
    """A face that is visible in a frame."""

    person: str
    box: Box


class _Visitor(NamedTuple):
    person: str
    picture: int
    x: int
    y: int
    width: int
    height: int


class Scene:
    """Raises ValueError for settings that leave nobody to show or no room to show them."""

    def __init__(self, settings: SceneSettings, people: People | None = None) -> None:
        self.settings = settings
        self._people = people or find_people()
        self._columns, self._rows = _grid(settings)
        self._cell = settings.width // self._columns, settings.height // self._rows
        shown = [n for n, pictures in self._people.pictures.items() if pictures > settings.enrolled]
        if len(shown) < settings.at_once:
            raise ValueError(
                f"with {settings.enrolled} pictures of everybody enrolled, there are"
                f" {len(shown)} people left to show, not {settings.at_once}"
            )
        if settings.persons > len(shown):
            raise ValueError(f"there are {len(shown)} people, not {settings.persons}")
        if settings.persons == len(shown) and settings.strangers > 0:
            raise ValueError(f"all {len(shown)} people are of interest: nobody is left to be a stranger")
        self._known = shown[: settings.persons]
        self._strangers = shown[settings.persons :]

    @property
    def kind(self) -> str:
        """ "orl", or "drawn" where the photographs are not installed."""
        return self._people.kind

    @property
    def persons_of_interest(self) -> tuple[str, ...]:
        return tuple(self._known)

    def enrolment(self) -> Iterator[tuple[str, Image]]:
        """Yields pictures of the persons of interest that the scene itself never shows, for a gallery."""
        for person in self._known:
            for number in range(self.settings.enrolled):
                yield person, self._people.picture(person, number)

    def truth(self, number: int) -> tuple[Shown, ...]:
        face = self._people.face
        return tuple(
            Shown(
                v.person,
                Box(
                    v.x + face.x * v.width,
                    v.y + face.y * v.height,
                    face.width * v.width,
                    face.height * v.height,
                ),
            )
            for v in self._visitors(number)
        )

    def picture(self, number: int) -> Image:
        shift = round(_to_and_fro(number, 4 * _PAN) * _PAN)
        image = self._background[:, shift : shift + self.settings.width].copy()
        for visitor in self._visitors(number):
            self._paste(image, visitor)
        return image

    def _visitors(self, number: int) -> Iterator[_Visitor]:
        for cell in range(self.settings.at_once):
            if (visitor := self._visitor(cell, number)) is not None:
                yield visitor

    def _visitor(self, cell: int, number: int) -> _Visitor | None:
        settings = self.settings
        # Cells change visitors at different times.
        visit, since = divmod(number + cell * settings.stay // settings.at_once, settings.stay)
        if since >= settings.stay * (1 - PAUSE):
            return None
        who = random.Random(f"scene/{settings.seed}/{cell}/{visit}")
        person = self._choose(who, cell)
        how = random.Random(f"scene/{settings.seed}/{settings.view}/{cell}/{visit}")
        picture = how.randrange(settings.enrolled, self._people.pictures[person])
        width, height = self._size(how.uniform(0.82, 0.95))
        free_x, free_y = self._cell[0] - width, self._cell[1] - height
        x = _to_and_fro(since + how.randrange(60), how.randrange(40, 80)) * free_x
        y = _to_and_fro(since + how.randrange(60), how.randrange(40, 80)) * free_y
        row, column = divmod(cell, self._columns)
        return _Visitor(
            person,
            picture,
            column * self._cell[0] + round(x),
            row * self._cell[1] + round(y),
            width,
            height,
        )

    def _choose(self, who: random.Random, cell: int) -> str:
        """Chooses a visitor. Each person stays in one cell, so nobody is in a picture twice."""
        known, strangers = (group[cell :: self.settings.at_once] for group in (self._known, self._strangers))
        unknown = who.random() < self.settings.strangers
        return who.choice((strangers or known) if unknown else (known or strangers))

    def _size(self, share: float) -> tuple[int, int]:
        """Returns the size of a portrait that takes this share of the cell, in its narrower direction."""
        scale = share * min(self._cell[0] / WIDTH, self._cell[1] / HEIGHT)
        return int(WIDTH * scale), int(HEIGHT * scale)

    def _paste(self, image: Image, visitor: _Visitor) -> None:
        size = visitor.width, visitor.height
        portrait = cv2.resize(self._people.picture(visitor.person, visitor.picture), size)
        place = np.s_[visitor.y : visitor.y + visitor.height, visitor.x : visitor.x + visitor.width]
        mask = _soft_edges(*size)
        image[place] = np.rint(portrait * mask + image[place] * (1 - mask)).astype(np.uint8)

    @cached_property
    def _background(self) -> Image:
        """Draws a wall with patches of light, too coarse to be taken for a face."""
        settings = self.settings
        draw = np.random.default_rng([settings.seed, settings.view])
        size = settings.width + _PAN, settings.height
        colour = draw.uniform(90, 150) + draw.uniform(-25, 25, 3)
        patches = (draw.uniform(-45, 45, (4, 6, 1)) + draw.uniform(-8, 8, (4, 6, 3))).astype(np.float32)
        light = cv2.resize(patches, size, interpolation=cv2.INTER_CUBIC)
        grain = draw.normal(0, 3, (size[1], size[0], 1))
        return np.clip(colour + light + grain, 0, 255).astype(np.uint8)


def _grid(settings: SceneSettings) -> tuple[int, int]:
    """Returns the columns and rows whose cells hold the largest portraits."""
    grids = [(columns, -(-settings.at_once // columns)) for columns in range(1, settings.at_once + 1)]

    def scale(grid: tuple[int, int]) -> float:
        return min(settings.width // grid[0] / WIDTH, settings.height // grid[1] / HEIGHT)

    best = max(grids, key=scale)
    if scale(best) < MIN_SCALE:
        raise ValueError(
            f"{settings.at_once} people at once are too many for {settings.width}×{settings.height} pixels:"
            " their faces could not be recognised"
        )
    return best


def _to_and_fro(step: int, steps: int) -> float:
    """Goes from 0 to 1 in so many steps, back in as many, and so on."""
    return abs((step + steps) % (2 * steps) - steps) / steps


def _soft_edges(width: int, height: int) -> NDArray[np.float32]:
    """1 inside, falling to 0 at the edges."""
    x = np.minimum(np.arange(1, width + 1), np.arange(width, 0, -1))
    y = np.minimum(np.arange(1, height + 1), np.arange(height, 0, -1))
    distance = np.minimum(x[np.newaxis, :], y[:, np.newaxis])
    return np.minimum(distance / _FEATHER, 1).astype(np.float32)[..., np.newaxis]
