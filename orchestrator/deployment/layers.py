"""Layers: content-addressed archives in the user's cache. Equal files make equal layers on every machine."""

import gzip
import hashlib
import io
import os
import tarfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, cast

from orchestrator.deployment import directories
from orchestrator.deployment.contents import Contents, Entry
from orchestrator.runs.files import read_json, write_json

FORMAT = 1
_COMPRESSION = 6
_MODE = 0o644
_BLOCK = 4096
_KEPT_S = 30 * 24 * 3600.0
_packing = threading.Lock()


@dataclass(frozen=True)
class Layer:
    """``digest`` is that of the archive's content, before compression; ``size`` is its size as it is sent."""

    name: str
    version: str
    digest: str
    size: int
    unpacked: int

    @property
    def archive(self) -> Path:
        return _folder() / f"{self.digest}.tar.gz"


def layer_of(contents: Contents, only: tuple[str, ...] = ()) -> Layer:
    """Packs a layer, unless the cached one is up to date. Blocks; safe in threads and beside other runs."""
    with _packing:
        key = "\0".join([str(FORMAT), contents.name, contents.version, *only, contents.stamp()])
        note = _folder() / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
        known = read_json(note)
        if known is not None and (layer := Layer(**known)).archive.exists():
            for file in (note, layer.archive):
                with suppress(FileNotFoundError):
                    file.touch()
            return layer
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        layer = _packed(contents)
        write_json(note, asdict(layer))
        _forget_old()
        return layer


def _packed(contents: Contents) -> Layer:
    temporary = _folder() / f".{threading.get_native_id()}-{time.monotonic_ns()}.tmp"
    try:
        with temporary.open("xb") as file:
            digest, unpacked = write_archive(file, contents.entries())
            file.flush()
            os.fsync(file.fileno())
        layer = Layer(contents.name, contents.version, digest, temporary.stat().st_size, unpacked)
        temporary.replace(layer.archive)
        return layer
    finally:
        temporary.unlink(missing_ok=True)


class _Digested:
    """A stream that computes the digest of what is written to it."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self.digest = hashlib.sha256()
        self._stream = stream

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._stream.write(data)


def write_archive(file: BinaryIO, entries: Iterable[Entry]) -> tuple[str, int]:
    """Writes the archive without times and owners; returns its digest, and the files' size on a disk."""
    unpacked = 0
    with gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as packed:
        digested = _Digested(packed)
        with tarfile.open(fileobj=cast(BinaryIO, digested), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for name, content in entries:
                info = tarfile.TarInfo(name)
                info.mode = _MODE
                with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
                    info.size = source.seek(0, io.SEEK_END)
                    source.seek(0)
                    archive.addfile(info, source)
                unpacked += -(-info.size // _BLOCK) * _BLOCK
    return digested.digest.hexdigest(), unpacked


def _folder() -> Path:
    return directories.cache() / "layers"


def _forget_old() -> None:
    for path in _folder().iterdir():
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                path.unlink()
