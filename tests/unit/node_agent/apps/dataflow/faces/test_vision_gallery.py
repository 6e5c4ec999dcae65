"""The gallery: a value with a version, a file that is whole or refused, and answers with a threshold."""

import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from node_agent.apps.dataflow.faces import gallery as module
from node_agent.apps.dataflow.faces.frames import UNKNOWN
from node_agent.apps.dataflow.faces.gallery import (
    BadGallery,
    Gallery,
    Sample,
    load_gallery,
    sample,
    save_gallery,
)
from node_agent.apps.dataflow.faces.lbph import LENGTH


def at(*where: float) -> NDArray[np.float32]:
    """A point of the embedding space."""
    return np.pad(np.array(where, np.float32), (0, 128 - len(where)))


def counts(value: int) -> NDArray[np.uint8]:
    histogram = np.zeros((64, 59), np.uint8)
    histogram[:, value] = 64
    return histogram.ravel()


def rounded(answer: tuple[str, float | None]) -> tuple[str, float]:
    person, distance = answer
    assert distance is not None
    return person, round(distance, 5)


ANN, ANN_TOO = sample("Ann", at(1.0), counts(1)), sample("Ann", at(1.2), counts(2))
BOB = sample("Bob", at(0.0, 1.0), counts(3))
BOTH = Gallery((ANN, ANN_TOO, BOB))


def test_the_nearest_picture_names_the_face_within_the_threshold() -> None:
    assert rounded(BOTH.recognise(at(1.3))) == ("Ann", 0.1)
    assert rounded(BOTH.recognise(at(0.0, 0.6))) == ("Bob", 0.4)
    assert rounded(BOTH.recognise(at(0.0, 0.5))) == (UNKNOWN, 0.5)
    assert rounded(BOTH.recognise(at(0.0, 0.5), threshold=0.6)) == ("Bob", 0.5)


def test_histograms_are_an_answer_of_their_own() -> None:
    assert BOTH.recognise_histogram(counts(3)) == ("Bob", 0.0)
    assert BOTH.recognise_histogram(counts(4)) == (UNKNOWN, 1.0)


def test_an_empty_gallery_knows_nobody() -> None:
    assert Gallery().recognise(at(1.0)) == (UNKNOWN, None)
    assert Gallery().recognise_histogram(counts(1)) == (UNKNOWN, None)


def test_the_version_is_of_the_content() -> None:
    assert Gallery((BOB, ANN_TOO, ANN, BOB)) == BOTH
    assert Gallery((BOB, ANN_TOO, ANN, BOB)).version == BOTH.version
    assert len({g.version for g in (Gallery(), Gallery((ANN,)), Gallery((ANN_TOO,)), BOTH)}) == 4


def test_persons_come_and_go() -> None:
    assert Gallery().add([ANN, BOB]).add([ANN_TOO]) == BOTH
    assert BOTH.persons == {"Ann": 2, "Bob": 1}
    assert BOTH.remove("Ann") == Gallery((BOB,))
    with pytest.raises(BadGallery, match="nobody in the gallery is called 'Eve'"):
        BOTH.remove("Eve")


@pytest.mark.parametrize("name", [UNKNOWN, "unknown", "Unknown", " Ann", "A\nnn", "x" * 65, "\x1b[31m"])
def test_names_that_would_confuse_are_refused(name: str) -> None:
    with pytest.raises(BadGallery, match="cannot be a person's name"):
        sample(name, at(1.0), counts(1))


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(BadGallery, match="not finite"):
        sample("Ann", at(float("nan")), counts(1))
    with pytest.raises(BadGallery, match="no valid embedding"):
        sample("Ann", np.zeros(3, np.float32), counts(1))


def test_a_saved_gallery_is_loaded_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "persons.gallery"
    save_gallery(BOTH, path)
    save_gallery(BOTH.remove("Bob"), path)
    loaded = load_gallery(path)
    assert loaded == BOTH.remove("Bob") and loaded.version == BOTH.remove("Bob").version
    assert rounded(loaded.recognise(at(1.3))) == ("Ann", 0.1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "biometric data"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BadGallery, match="cannot write gallery"):
        save_gallery(BOTH, tmp_path / "nowhere" / "persons.gallery")
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadGallery, match="cannot write gallery"):
        save_gallery(BOTH, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_no_damage_is_taken_for_a_gallery() -> None:
    data = BOTH.encode()
    assert Gallery.decode(data) == BOTH
    for place in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[place] ^= 0x21
        with pytest.raises(BadGallery):
            Gallery.decode(bytes(damaged))
    for length in range(0, len(data), 97):
        with pytest.raises(BadGallery):
            Gallery.decode(data[:length])


def written(**changes: object) -> bytes:
    file = {"format": module.FORMAT, "edition": 1, "model": module.MODEL, "samples": (), "version": ""}
    return msgspec.msgpack.encode(file | changes)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xd8\xff", "not a gallery"),
        (msgspec.msgpack.encode({"format": "photo-album", "edition": 1}), "not a gallery"),
        (written(edition=0, samples={"of": "old"}), "edition 0.*add the pictures again"),
        (written(model="another"), "model another.*add the pictures again"),
        (written(samples=[("Ann", b"", b"")]), "no valid embedding"),
        (written(samples=[("Ann", ANN.embedding, bytes(LENGTH))]), "not what was saved"),
        (written(samples="x"), "damaged"),
        (bytes(module.MAX_BYTES + 1), "larger than 64 MB"),
    ],
    ids=["picture", "foreign", "old", "model", "short", "version", "type", "huge"],
)
def test_files_of_others_are_refused_with_a_reason(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "persons.gallery"
    path.write_bytes(data)
    with pytest.raises(BadGallery, match=f"gallery {path}: .*{reason}"):
        load_gallery(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadGallery, match=r"cannot read gallery .*none\.gallery: No such file"):
        load_gallery(tmp_path / "none.gallery")


def test_a_gallery_can_be_read_without_opencv() -> None:
    program = "import sys, node_agent.apps.dataflow.faces.gallery; print('cv2' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert found.stdout.strip() == "False"


def test_samples_are_ordered_by_person() -> None:
    assert isinstance(BOTH.samples[0], Sample)
    assert [each.person for each in BOTH.samples] == ["Ann", "Ann", "Bob"]
