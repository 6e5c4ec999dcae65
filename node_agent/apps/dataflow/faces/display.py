"""The sink that shows what was recognised: draws boxes and names into pictures, and writes files.

The node's directory has the last of the frames that are kept, and the newest one as ``latest.jpg``. A file
that exists is always complete.
"""

import os
import unicodedata
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from node_agent.apps.dataflow.faces.events import FaceRecord, FacesSeen
from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import SHOWN_UNKNOWN, UNKNOWN, Face, Frame
from node_agent.apps.dataflow.faces.params import ShowParams, folder_of
from node_agent.apps.dataflow.faces.pixels import BadImage, Image, decode_image, encode_jpeg
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit

LATEST = "latest.jpg"
QUALITY = 85
KNOWN_COLOUR, STRANGER_COLOUR, UNASKED_COLOUR = (80, 220, 80), (70, 70, 235), (0, 210, 255)
_FONT = cv2.FONT_HERSHEY_SIMPLEX


class PictureFiles:
    """A bounded number of pictures in a folder, by number. Raises OSError.

    They show people: only the user can read them, the folder, and the folder above.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        for each in (folder.parent, folder):
            each.mkdir(0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._keep = keep
        self._kept = deque(sorted(path for path in folder.glob("*.jpg") if path.name != LATEST))

    def add(self, number: int, picture: bytes) -> None:
        path = self._folder / f"{number:08d}.jpg"
        self._write(path, picture)
        if path not in self._kept:
            self._kept.append(path)
        while len(self._kept) > self._keep:
            self._kept.popleft().unlink(missing_ok=True)

    def show(self, picture: bytes) -> None:
        self._write(self._folder / LATEST, picture)

    def _write(self, path: Path, picture: bytes) -> None:
        unfinished = path.with_suffix(".tmp")
        with open(unfinished, "wb", opener=_private) as file:
            file.write(picture)
        unfinished.replace(path)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)


def picture_files(context: Context, keep: int) -> PictureFiles | None:
    """Returns the files of one replica in its node's directory, if it has one. Raises OSError."""
    if context.directory is None:
        return None
    return PictureFiles(context.directory / "frames" / folder_of(context.app, context.replica), keep)


class Display:
    def __init__(self, params: ShowParams, context: Context) -> None:
        """Raises OSError."""
        self._params = params
        self._context = context
        self._files = picture_files(context, params.keep)
        self._faults = Faults(context)
        self._shown = 0
        self._refreshed: float | None = None

    async def process(self, unit: Unit) -> Sequence[bytes]:
        for _, frame in self._faults.frames(unit):
            latency_ns = self._context.now_ns() - unit.born_ns
            self._context.record(_seen(self._context.replica, unit, frame, latency_ns))
            if self._files is not None:
                await self._keep(self._files, frame)
        return ()

    async def _keep(self, files: PictureFiles, frame: Frame) -> None:
        now = self._context.time()
        keep = self._params.keep > 0 and self._shown % self._params.every == 0
        show = self._refreshed is None or now - self._refreshed >= self._params.refresh
        self._shown += 1
        if not (keep or show):
            return
        if show:
            self._refreshed = now

        def draw_and_write() -> None:
            picture = encode_jpeg(annotated(frame), QUALITY)
            if keep:
                files.add(frame.number, picture)
            if show:
                files.show(picture)

        try:
            await self._context.work(draw_and_write, modelled=self._params.cpu)
        except BadImage as error:
            self._faults.count("bad_image", error)
        except OSError as error:
            self._faults.count("not_written", error)


def _seen(replica: str, unit: Unit, frame: Frame, latency_ns: int) -> FacesSeen:
    faces = tuple(
        FaceRecord(
            face.person,
            face.box.x,
            face.box.y,
            face.box.width,
            face.box.height,
            face.score,
            face.distance,
        )
        for face in frame.faces
    )
    return FacesSeen(replica, unit.origin, unit.tau, frame.number, frame.gallery, latency_ns, faces)


def annotated(frame: Frame) -> Image:
    """Returns the picture with boxes and names of its faces. Raises BadImage."""
    image = decode_image(frame.image) if frame.image else _from_crops(frame)
    for face in frame.faces:
        _draw(image, face)
    return image


def _from_crops(frame: Frame) -> Image:
    """Returns a picture of the crops, if only the faces were sent."""
    image = np.full((frame.height, frame.width, 3), 40, np.uint8)
    for face in frame.faces:
        left, top, right, bottom = _corners(face, frame.width, frame.height)
        if face.crop and right > left and bottom > top:
            crop = decode_image(face.crop)
            image[top:bottom, left:right] = cv2.resize(crop, (right - left, bottom - top))
    return image


def _draw(image: Image, face: Face) -> None:
    height, width = image.shape[:2]
    colour = {None: UNASKED_COLOUR, UNKNOWN: STRANGER_COLOUR}.get(face.person, KNOWN_COLOUR)
    left, top, right, bottom = _corners(face, width, height)
    cv2.rectangle(image, (left, top), (right - 1, bottom - 1), colour, 2)
    if face.person is None:
        return
    name = SHOWN_UNKNOWN if face.person == UNKNOWN else drawable(face.person)
    label = name if face.distance is None else f"{name} {face.distance:.2f}"
    size = max(0.4, width / 800)
    (text_width, text_height), below = cv2.getTextSize(label, _FONT, size, 1)
    x = max(0, min(left, width - text_width - 4))
    y = top if top >= text_height + below + 2 else min(height, bottom + text_height + below + 2)
    cv2.rectangle(image, (x, y - text_height - below - 2), (x + text_width + 4, y), colour, cv2.FILLED)
    cv2.putText(image, label, (x + 2, y - below), _FONT, size, (0, 0, 0), 1, cv2.LINE_AA)


def drawable(name: str) -> str:
    """Returns the name in ASCII, all that OpenCV's fonts have: without accents, and ``?`` for other
    characters.
    """
    return "".join(map(_drawable_character, unicodedata.normalize("NFC", name)))


def _drawable_character(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or ("" if unicodedata.combining(character) else "?")


def _corners(face: Face, width: int, height: int) -> tuple[int, int, int, int]:
    """Returns the corners of the part of the box that lies in the picture."""
    box = face.box
    left, right = (max(0, min(width, round(x))) for x in (box.x, box.x + box.width))
    top, bottom = (max(0, min(height, round(y))) for y in (box.y, box.y + box.height))
    return left, top, right, bottom
