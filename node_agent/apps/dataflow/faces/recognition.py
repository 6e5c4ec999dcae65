"""Recognises faces: compares aligned crops with a gallery, by the embedding network or by LBPH."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.alignment import SIDE, align, small_grey
from node_agent.apps.dataflow.faces.embedding import shared_embedder
from node_agent.apps.dataflow.faces.frames import Face
from node_agent.apps.dataflow.faces.gallery import EMBEDDING_THRESHOLD, LBPH_THRESHOLD, Gallery
from node_agent.apps.dataflow.faces.pixels import BadImage, Image

Method = Literal["embedding", "lbph"]


class Recogniser:
    """``gallery.version`` says which one named the faces."""

    def __init__(
        self, gallery: Gallery, method: Method = "embedding", threshold: float | None = None
    ) -> None:
        """Raises ModelMissing. ``threshold``: how far a face may be from a picture of the person at most; the
        method's own by default."""
        self.gallery = gallery
        if method == "embedding":
            self._name = _by_embedding(gallery, EMBEDDING_THRESHOLD if threshold is None else threshold)
        else:
            self._name = _by_lbph(gallery, LBPH_THRESHOLD if threshold is None else threshold)

    def recognise(self, image: Image, faces: Sequence[Face]) -> tuple[Face, ...]:
        """Returns the faces of a picture, named."""
        return self.recognise_crops(faces, [align(image, face) for face in faces])

    def recognise_crops(self, faces: Sequence[Face], crops: Sequence[Image]) -> tuple[Face, ...]:
        """The same if only aligned crops were sent. Raises BadImage if one has another size."""
        named = []
        for face, crop in zip(faces, crops, strict=True):
            if crop.shape != (SIDE, SIDE, 3):
                raise BadImage(f"an aligned face has {SIDE} × {SIDE} pixels, not {crop.shape}")
            person, distance = self._name(crop)
            named.append(msgspec.structs.replace(face, person=person, distance=distance))
        return tuple(named)


def _by_embedding(gallery: Gallery, threshold: float) -> Callable[[Image], tuple[str, float | None]]:
    embedder = shared_embedder()
    return lambda crop: gallery.recognise(embedder.embed_crops([crop])[0], threshold)


def _by_lbph(gallery: Gallery, threshold: float) -> Callable[[Image], tuple[str, float | None]]:
    return lambda crop: gallery.recognise_histogram(lbph.histogram(small_grey(crop, lbph.SIDE)), threshold)
