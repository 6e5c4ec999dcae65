"""Finds the faces in a picture.

``yunet`` is a small network with five landmarks a face; ``haar`` and ``lbp`` are the cascades of the paper's
prototype, which have no landmarks.
"""

import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from node_agent.apps.dataflow.faces.frames import Box, Face
from node_agent.apps.dataflow.faces.models import YUNET, ModelMissing, read_model
from node_agent.apps.dataflow.faces.pixels import BadImage, Image

DetectorKind = Literal["yunet", "haar", "lbp"]
Find = Callable[[Image], tuple[Face, ...]]

YUNET_SCORE, YUNET_OVERLAP, YUNET_CANDIDATES = 0.7, 0.3, 200
YUNET_SMALLEST = 64
"""Pixels to which smaller sides are padded: OpenCV gives wrong results if a layer shrinks to a single
cell.
"""
CASCADES = {"haar": "haarcascade_frontalface_alt2.xml", "lbp": "lbpcascade_frontalface_improved.xml"}
CASCADE_SCALE, CASCADE_NEIGHBOURS, CASCADE_SMALLEST = 1.1, 4, 30


class Detector:
    """Finds faces, best first. Threads may share it; they then take turns."""

    def __init__(self, kind: DetectorKind = "yunet", score: float = YUNET_SCORE) -> None:
        """Raises ModelMissing. ``score``: the least score of a face; cascades have no scores."""
        self._find = _yunet(score) if kind == "yunet" else _cascade(kind)
        self._turn = threading.Lock()

    def detect(self, image: Image) -> tuple[Face, ...]:
        if image.ndim != 3 or image.size == 0:
            raise BadImage(f"cannot look for faces in a picture of shape {image.shape}")
        with self._turn:
            faces = self._find(image)
        return tuple(sorted(faces, key=lambda face: (-face.score, face.box.x, face.box.y)))


@cache
def shared_detector(kind: DetectorKind = "yunet", score: float = YUNET_SCORE) -> Detector:
    """Returns one detector for the whole process. Loaded before the fork, all agents share its memory."""
    detector = Detector(kind, score)
    detector.detect(np.zeros((240, 320, 3), np.uint8))  # so that its buffers are shared, too
    return detector


def _yunet(score: float) -> Find:
    model = np.frombuffer(read_model(YUNET), np.uint8)
    nothing = np.empty(0, np.uint8)
    network = cv2.FaceDetectorYN.create(
        "onnx", model, nothing, (320, 240), score, YUNET_OVERLAP, YUNET_CANDIDATES
    )

    def find(image: Image) -> tuple[Face, ...]:
        height, width = (max(side, YUNET_SMALLEST) for side in image.shape[:2])
        below, beside = height - image.shape[0], width - image.shape[1]
        if below or beside:
            image = cv2.copyMakeBorder(image, 0, below, 0, beside, cv2.BORDER_CONSTANT).astype(np.uint8)
        network.setInputSize((width, height))
        _, rows = network.detect(image)
        return tuple(_face([float(value) for value in row]) for row in (() if rows is None else rows))

    return find


def _face(row: list[float]) -> Face:
    """YuNet's row: box, five points, score."""
    points = tuple((row[i], row[i + 1]) for i in range(4, 14, 2))
    return Face(Box(*row[:4]), points, row[14])


def cascade_file(kind: Literal["haar", "lbp"]) -> Path:
    """Raises ModelMissing."""
    name = CASCADES[kind]
    path = Path(cv2.data.haarcascades, name) if hasattr(cv2, "data") else Path(name)
    if not path.is_file():
        raise ModelMissing(
            f"detector {kind}: the installed OpenCV {cv2.__version__} has no {name}; use detector yunet"
        )
    return path


def _cascade(kind: Literal["haar", "lbp"]) -> Find:
    cascade = cv2.CascadeClassifier(str(cascade_file(kind)))

    def find(image: Image) -> tuple[Face, ...]:
        grey = cv2.equalizeHist(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))
        boxes = cascade.detectMultiScale(
            grey, CASCADE_SCALE, CASCADE_NEIGHBOURS, 0, (CASCADE_SMALLEST, CASCADE_SMALLEST)
        )
        return tuple(Face(Box(*(float(side) for side in box)), (), 1.0) for box in boxes)

    return find
