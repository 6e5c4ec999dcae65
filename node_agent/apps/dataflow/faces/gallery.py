"""The gallery: the persons of interest with which recognition compares a face. A frozen value and its file.

Embeddings and histograms are computed once, when a picture is added, and sent to the recogniser replicas.
``version`` is a hash of the content, so a replica with another gallery is noticed.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.frames import SHOWN_UNKNOWN, UNKNOWN
from node_agent.model.checked import Checked, Refused

MODEL = "dlib-resnet-v1+lbph-u2-8x8"
EMBEDDING = 128
# For the embedding a little stricter than what the benchmark `faces` finds on its development people, just
# that for LBPH. The 0.6 that is usual with this network accepts strangers.
EMBEDDING_THRESHOLD, LBPH_THRESHOLD = 0.45, 0.31
FORMAT, EDITION = "rove-gallery", 1
MAX_BYTES, MAX_NAME = 64 << 20, 64


class BadGallery(ValueError):
    """The file is no usable gallery, or a name or a picture cannot be in one."""


class Sample(Struct, frozen=True, order=True, array_like=True):
    """One picture of a person."""

    person: str
    embedding: bytes  # 128 float32, little-endian
    histogram: bytes  # see lbph


def sample(person: str, embedding: NDArray[np.float32], histogram: lbph.Histogram) -> Sample:
    """Raises BadGallery."""
    check_name(person)
    made = Sample(person, embedding.astype("<f4").tobytes(), histogram.tobytes())
    _check(made)
    return made


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    edition: int
    model: str
    samples: tuple[Sample, ...]
    version: str


class _Head(Struct, frozen=True):
    """The fields that every edition has."""

    format: str
    edition: int


_heads: Checked[_Head] = Checked(_Head, MAX_BYTES, "msgpack")
_files: Checked[_File] = Checked(_File, MAX_BYTES, "msgpack")


@dataclass(frozen=True)
class Gallery:
    """The order in which pictures were added, and adding one twice, make no difference."""

    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", tuple(sorted(frozenset(self.samples))))

    @cached_property
    def version(self) -> str:
        content = msgspec.msgpack.encode((FORMAT, EDITION, MODEL, self.samples))
        return hashlib.sha256(content).hexdigest()[:16]

    @cached_property
    def persons(self) -> dict[str, int]:
        """Returns how many pictures there are of each person, by name."""
        counts: dict[str, int] = {}
        for each in self.samples:
            counts[each.person] = counts.get(each.person, 0) + 1
        return counts

    def add(self, samples: Iterable[Sample]) -> "Gallery":
        return Gallery((*self.samples, *samples))

    def remove(self, person: str) -> "Gallery":
        if person not in self.persons:
            raise BadGallery(f"nobody in the gallery is called {person!r}")
        return Gallery(tuple(each for each in self.samples if each.person != person))

    def recognise(
        self, embedding: NDArray[np.float32], threshold: float = EMBEDDING_THRESHOLD
    ) -> tuple[str, float | None]:
        """Returns the person, or UNKNOWN, and the distance of the most similar picture (None: the gallery is
        empty).
        """
        apart = np.linalg.norm(self._embeddings - embedding.reshape(1, EMBEDDING), axis=1)
        return self._nearest(apart, threshold)

    def recognise_histogram(
        self, histogram: lbph.Histogram, threshold: float = LBPH_THRESHOLD
    ) -> tuple[str, float | None]:
        """The same by LBPH."""
        return self._nearest(lbph.distances(histogram, self._histograms), threshold)

    def _nearest(self, apart: NDArray[np.float32], threshold: float) -> tuple[str, float | None]:
        if not len(apart):
            return UNKNOWN, None
        nearest = int(apart.argmin())
        distance = float(apart[nearest])
        return self.samples[nearest].person if distance <= threshold else UNKNOWN, distance

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        joined = b"".join(each.embedding for each in self.samples)
        return np.frombuffer(joined, "<f4").reshape(-1, EMBEDDING)

    @cached_property
    def _histograms(self) -> NDArray[np.uint8]:
        joined = b"".join(each.histogram for each in self.samples)
        return np.frombuffer(joined, np.uint8).reshape(-1, lbph.LENGTH)

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(_File(FORMAT, EDITION, MODEL, self.samples, self.version))

    @staticmethod
    def decode(data: bytes) -> "Gallery":
        """Raises BadGallery."""
        if len(data) > MAX_BYTES:
            raise BadGallery(f"larger than {MAX_BYTES >> 20} MB")
        try:
            head = _heads.decode(data)
        except Refused as error:
            raise BadGallery("not a gallery, or cut short") from error
        if head.format != FORMAT:
            raise BadGallery("not a gallery")
        if head.edition != EDITION:
            raise BadGallery(
                f"of edition {head.edition}, this version reads {EDITION}: add the pictures again"
            )
        try:
            file = _files.decode(data)
        except Refused as error:
            raise BadGallery(f"damaged: {error}") from error
        if file.model != MODEL:
            raise BadGallery(
                f"made with model {file.model}, this version has {MODEL}: add the pictures again"
            )
        for each in file.samples:
            check_name(each.person)
            _check(each)
        gallery = Gallery(file.samples)
        if gallery.version != file.version:
            raise BadGallery("damaged: its content is not what was saved")
        return gallery


def load_gallery(path: Path) -> Gallery:
    """Raises BadGallery, with the path in its message."""
    if path.exists() and not path.is_file():  # reading a pipe would wait for somebody to write
        raise BadGallery(f"cannot read gallery {path}: not a file")
    try:
        with path.open("rb") as file:
            return Gallery.decode(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise BadGallery(f"cannot read gallery {path}: {error.strerror}") from error
    except BadGallery as error:
        raise BadGallery(f"gallery {path}: {error}") from error


def save_gallery(gallery: Gallery, path: Path) -> None:
    """Writes the file completely or not at all, readable only by the user: it holds biometric data. Raises
    BadGallery.
    """
    data = gallery.encode()
    if len(data) > MAX_BYTES:
        raise BadGallery(f"gallery {path} would be larger than {MAX_BYTES >> 20} MB")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o600)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BadGallery(f"cannot write gallery {path}: {error.strerror}") from error


def check_name(person: str) -> None:
    """Raises BadGallery."""
    if person.casefold() == SHOWN_UNKNOWN:
        raise BadGallery(f"{person!r} cannot be a person's name: strangers are called that")
    if person == UNKNOWN or len(person) > MAX_NAME or person != person.strip() or not person.isprintable():
        raise BadGallery(
            f"{person[:MAX_NAME]!r} cannot be a person's name: 1 to {MAX_NAME} printable characters,"
            " no space at the ends"
        )


def _check(each: Sample) -> None:
    if len(each.embedding) != 4 * EMBEDDING or len(each.histogram) != lbph.LENGTH:
        raise BadGallery(f"a picture of {each.person} has no valid embedding or histogram")
    if not np.isfinite(np.frombuffer(each.embedding, "<f4")).all():
        raise BadGallery(f"the embedding of a picture of {each.person} is not finite")
