"""Computes 128 numbers of a face: those of one person are close together, those of two persons are not.

The network is dlib's (CC0), run by OpenCV; its numbers equal dlib's own to the sixth digit.
"""

import threading
from collections.abc import Sequence
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces.alignment import SIDE, align
from node_agent.apps.dataflow.faces.frames import Face
from node_agent.apps.dataflow.faces.models import DLIB_RESNET, read_model
from node_agent.apps.dataflow.faces.pixels import Image
from node_agent.apps.dataflow.faces.resnet import EMBEDDING, face_network

MEAN_RGB, SCALE = (122.782, 117.001, 104.298), 1 / 256


class Embedder:
    """Threads may share it; they then take turns."""

    def __init__(self) -> None:
        """Raises ModelMissing."""
        network = np.frombuffer(face_network(read_model(DLIB_RESNET)), np.uint8)
        self._network = cv2.dnn.readNetFromONNX(network)
        self._turn = threading.Lock()

    def embed(self, image: Image, faces: Sequence[Face]) -> NDArray[np.float32]:
        """Returns n × 128 numbers, in the order of the faces."""
        return self.embed_crops([align(image, face) for face in faces])

    def embed_crops(self, crops: Sequence[Image]) -> NDArray[np.float32]:
        """Returns n × 128 numbers for faces that are aligned already."""
        # One at a time: the numbers of a face may not depend on who else is in the picture.
        rows = [self._embed_one(crop) for crop in crops]
        return np.stack(rows) if rows else np.empty((0, EMBEDDING), np.float32)

    def _embed_one(self, crop: Image) -> NDArray[np.float32]:
        blob = cv2.dnn.blobFromImage(crop, SCALE, (SIDE, SIDE), MEAN_RGB, swapRB=True)
        with self._turn:
            self._network.setInput(blob)
            return np.array(self._network.forward()[0], np.float32)


@cache
def shared_embedder() -> Embedder:
    """Returns one network for the whole process. Loaded before the fork, all agents share its memory."""
    embedder = Embedder()
    embedder.embed_crops([np.zeros((SIDE, SIDE, 3), np.uint8)])  # so that its buffers are shared, too
    return embedder
