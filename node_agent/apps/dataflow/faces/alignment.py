"""Turns and scales faces to one size: eyes, nose and mouth are at the same places in every crop."""

import cv2
import numpy as np
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.frames import Box, Face
from node_agent.apps.dataflow.faces.pixels import BadImage, Image

SIDE = 150
# Where the embedding network was trained to see the five landmarks.
PLACES = np.array([[41.3, 47.6], [103.7, 47.5], [71.8, 79.4], [47.2, 104.8], [100.1, 104.7]])
# Where they lie in the box of a detector that knows no landmarks (in box widths and heights).
TYPICAL = np.array([[0.30, 0.39], [0.70, 0.39], [0.50, 0.61], [0.33, 0.79], [0.67, 0.79]])
# The edges of a crop show more hair and background than face.
MIDDLE = slice(SIDE // 10, SIDE - SIDE // 10)


def align(image: Image, face: Face) -> Image:
    """Returns the face as a crop of 150 × 150. Raises BadImage if its landmarks are no face."""
    points = np.array(face.landmarks, float) if face.landmarks else _typical(face.box)
    if points.shape != PLACES.shape or not np.isfinite(points).all():
        raise BadImage(f"a face needs five landmarks, not {points.shape}")
    crop = cv2.warpAffine(image, similarity(points, PLACES), (SIDE, SIDE), flags=cv2.INTER_LINEAR)
    return crop.astype(np.uint8, copy=False)


def small_grey(crop: Image, side: int) -> NDArray[np.uint8]:
    """Returns the middle of an aligned crop in grey, side × side, for LBPH."""
    middle = cv2.cvtColor(crop[MIDDLE, MIDDLE], cv2.COLOR_BGR2GRAY)
    return cv2.resize(middle, (side, side), interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def similarity(points: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the 2×3 matrix of the rotation, scale and shift that brings the points closest to the places.

    Least squares has a closed form if points of the plane are complex numbers.
    """
    start, end = (array @ (1, 1j) for array in (points, places))
    around = start - start.mean()
    spread = np.vdot(around, around).real
    if spread < 1e-9:
        raise BadImage("all landmarks of a face lie on one spot")
    turn = np.vdot(around, end - end.mean()) / spread
    shift = end.mean() - turn * start.mean()
    return np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]])


def _typical(box: Box) -> NDArray[np.float64]:
    return np.array((box.x, box.y)) + TYPICAL * (box.width, box.height)
