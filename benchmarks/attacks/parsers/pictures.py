"""Hostile payloads of video queries from another node, and hostile galleries: pictures, faces, heat maps."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.mutation import changed_bytes, changed_message, encoded, plain
from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.frames import BadFrame, Box, Face, Frame, decode_frame
from node_agent.apps.dataflow.faces.gallery import EMBEDDING, BadGallery, Gallery, sample
from node_agent.apps.dataflow.faces.heat import HeatMap, added, decode_heat, heat_of
from node_agent.apps.dataflow.faces.pixels import BadImage, decode_image, encode_jpeg, encode_png


class Payloads:
    def __init__(
        self, sound: list[Any], read: Callable[[bytes], object], errors: tuple[type[Exception], ...]
    ) -> None:
        self._sound = sound
        self._read = read
        self._errors = errors

    def draw(self, rng: random.Random) -> bytes:
        if isinstance(self._sound[0], bytes) or rng.random() < 0.1:
            originals = [s if isinstance(s, bytes) else encoded(s, "msgpack") for s in self._sound]
            return changed_bytes(originals, rng)
        return changed_message(self._sound, "msgpack", rng)

    def feed(self, message: bytes) -> None:
        with contextlib.suppress(*self._errors):
            self._read(message)

    def close(self) -> None:
        pass


def frames(directory: Path) -> Payloads:
    face = Face(Box(1, 2, 30, 40), ((1.0, 2.0),) * 5, 0.9, "Ada", 0.3, b"crop")
    sound = [plain(Frame(1, 640, 480, b"jpeg", (face,), "v")), plain(HeatMap(2, 2, (1, 2, 3, 4), 1))]

    def read(payload: bytes) -> None:
        with contextlib.suppress(BadFrame):
            heat_of(decode_frame(payload), 8, 6)
        added([decode_heat(payload)], 2, 2)

    return Payloads(sound, read, (BadFrame,))


def images(directory: Path) -> Payloads:
    picture = (np.arange(48 * 64 * 3) % 251).astype(np.uint8).reshape(48, 64, 3)
    return Payloads([encode_jpeg(picture), encode_png(picture)], decode_image, (BadImage,))


def galleries(directory: Path) -> Payloads:
    embedding = np.linspace(0, 1, EMBEDDING, dtype=np.float32)
    histogram = np.zeros(lbph.LENGTH, np.uint8)
    sound = plain_map(Gallery((sample("Ada", embedding, histogram),)).encode())
    return Payloads([sound], Gallery.decode, (BadGallery,))


def plain_map(data: bytes) -> Any:
    import msgspec

    return msgspec.msgpack.decode(data)
