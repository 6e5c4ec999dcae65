"""Joins the frames of several cameras at the same moment, side by side, with everybody whom they see."""

from collections.abc import Sequence

import cv2
import numpy as np
from msgspec import structs

from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import BadFrame, Box, Face, Frame, decode_frame, encode_frame
from node_agent.apps.dataflow.faces.params import CorrelateParams
from node_agent.apps.dataflow.faces.pixels import BadImage, Image, decode_image, encode_jpeg
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit

QUALITY = 80


class Correlator:
    """A join on τ: cameras that take pictures at the same rate have the same τ at the same time."""

    def __init__(self, params: CorrelateParams, context: Context) -> None:
        self._params = params
        self._context = context
        self._faults = Faults(context)

    async def process(self, unit: Unit) -> Sequence[bytes]:
        try:
            frames = [decode_frame(payload) for payload in unit.payloads()]
        except BadFrame as error:
            self._faults.count("bad_frame", error)
            return ()
        if self._params.matching and not seen_by_all(frames):
            return ()
        try:
            joined = await self._context.work(lambda: side_by_side(frames), modelled=self._params.cpu)
        except (BadImage, cv2.error) as error:
            self._faults.count("bad_image", error)
            return ()
        return (encode_frame(joined),)


def seen_by_all(frames: Sequence[Frame]) -> list[str]:
    """Returns the names of persons that are in every frame."""
    each = [{face.person for face in frame.faces if face.person} for frame in frames]
    return sorted(person for person in set.intersection(*each) if person)


def side_by_side(frames: Sequence[Frame]) -> Frame:
    """Returns one frame, from left to right. It has a picture if one of them has."""
    faces: list[Face] = []
    left = 0
    for frame in frames:
        faces += (_moved(face, left) for face in frame.faces)
        left += frame.width
    height = max(frame.height for frame in frames)
    image = _joined(frames, left, height) if any(frame.image for frame in frames) else b""
    gallery = "+".join(dict.fromkeys(frame.gallery for frame in frames if frame.gallery))
    return Frame(frames[0].number, left, height, image, tuple(faces), gallery)


def _joined(frames: Sequence[Frame], width: int, height: int) -> bytes:
    joined: Image = np.zeros((height, width, 3), np.uint8)
    left = 0
    for frame in frames:
        if frame.image:
            image = decode_image(frame.image)
            if image.shape[:2] != (frame.height, frame.width):
                raise BadImage(f"a picture of {image.shape[1]}×{image.shape[0]} in a frame of another size")
            joined[: frame.height, left : left + frame.width] = image
        left += frame.width
    return encode_jpeg(joined, QUALITY)


def _moved(face: Face, by: int) -> Face:
    box = Box(face.box.x + by, face.box.y, face.box.width, face.box.height)
    return structs.replace(face, box=box, landmarks=tuple((x + by, y) for x, y in face.landmarks))
