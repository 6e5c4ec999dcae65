"""A run's directory as bytes on its way between machines: packed there, checked and unpacked here.

The bytes come from another machine. So number, size and names are bounded, and only plain files and
directories inside the target are made.
"""

import errno
import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from orchestrator.errors import RoveError
from orchestrator.foreign_names import path_inside
from orchestrator.runs.manifest import regular_files

MOST_BYTES = 256 * 2**20
"""Of an archive, compressed."""
MOST_UNPACKED = 8 * 2**30
MOST_FILES = 100_000
_PIECE = 1 << 20
_COMPILED = "__pycache__"
_CONTRADICTORY = (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""Errors of an archive that names something twice, or a file in no directory."""


class BadArchive(RoveError):
    """The archive is too large, broken, or names what lies outside of its directory."""


class _Bounded(io.BytesIO):
    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        if self.tell() + len(data) > MOST_BYTES:
            raise BadArchive(
                f"its records are more than {MOST_BYTES >> 20} MiB when compressed, too many to come back"
                " through Spark: run this sweep without --on"
            )
        return super().write(data)


class _Checked:
    """A file for tarfile, which reads the head of an entry in one piece, however large it claims to be."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self._file = file

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _PIECE:
            raise BadArchive("an executor sent an archive with a head that is too large")
        return self._file.read(size)


def pack(directory: Path) -> bytes:
    """Packs all plain files below ``directory`` but what Python compiled of users' code. The same files give
    the same bytes. Raises BadArchive."""
    target = _Bounded()
    with (
        gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w:", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(_kept(directory)):
            entry = tarfile.TarInfo(path.relative_to(directory).as_posix())
            entry.mode = path.stat().st_mode & 0o777  # galleries are their owner's alone
            if path.is_dir():
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
                continue
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return target.getvalue()


def _kept(directory: Path) -> Iterator[Path]:
    files = [file for file in regular_files(directory) if _COMPILED not in file.parts]
    yield from files
    yield from {folder for file in files for folder in file.parents if folder.is_relative_to(directory)} - {
        directory
    }


def unpack(pieces: Iterable[bytes], into: Path) -> None:
    """Unpacks into the empty directory ``into``. Raises BadArchive, UnsafeName; it may be half full then."""
    source = io.BytesIO()
    for piece in pieces:
        if source.tell() + len(piece) > MOST_BYTES:
            raise BadArchive("an executor sent more than a run may have")
        source.write(piece)
    source.seek(0)
    try:
        with gzip.GzipFile(fileobj=source) as content:
            with tarfile.open(fileobj=_Checked(content), mode="r:") as archive:  # type: ignore[call-overload]
                _extract(archive, into)
            while content.read(_PIECE):  # to the end, where the checksum is
                if content.tell() > MOST_UNPACKED:
                    raise BadArchive("an executor sent more than a run may have")
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno not in (None, *_CONTRADICTORY):
            raise  # of this machine's disk
        raise BadArchive(f"an executor sent a broken archive: {error}") from error


def _extract(archive: tarfile.TarFile, into: Path) -> None:
    left = MOST_UNPACKED
    for number, entry in enumerate(archive):
        left -= entry.size
        if number >= MOST_FILES or left < 0:
            raise BadArchive("an executor sent more than a run may have")
        path = path_inside(into, entry.name)
        if entry.isdir():
            path.mkdir(mode=entry.mode & 0o777 | 0o700)
            continue
        if not entry.isreg():
            raise BadArchive(f"an executor sent something else than a file: {entry.name}")
        content = archive.extractfile(entry)
        assert content is not None
        with open(path, "xb", opener=partial(os.open, mode=entry.mode & 0o666 | 0o600)) as file:
            while piece := content.read(_PIECE):
                file.write(piece)
