"""Writes files atomically (beside their place, synced, then renamed), and reads files of a run safely."""

import errno
import json
import math
import os
from pathlib import Path
from typing import Any, BinaryIO

from node_agent.model.checked import Checked, Refused
from node_agent.telemetry.segment_files import NotAFile, open_regular
from node_agent.telemetry.segment_files import sync_directory as sync_directory

MOST_BYTES = 256 * 1024 * 1024
MOST_LINE_BYTES = 4 * 1024 * 1024
_documents: Checked[Any] = Checked(Any, MOST_BYTES)
_entries: Checked[dict[str, Any]] = Checked(dict[str, Any], MOST_LINE_BYTES)


def write_atomic(path: Path, data: bytes, mode: int = 0o666) -> None:
    """``mode`` is subject to the umask."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        error.filename = error.filename or str(path)  # the error of a full disk has no file name
        raise
    sync_directory(path.parent)


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, (_text(value, 2) + "\n").encode())


def _text(value: Any, indent: int | None = None) -> str:
    """Returns JSON that every reader accepts. A number that is not
    finite, which JSON does not have, becomes null."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value


def open_to_append(path: Path) -> BinaryIO:
    """Opens unbuffered. Never follows a link and never waits for a
    pipe: the directory may be somebody else's."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    return open(path, "ab", buffering=0, opener=lambda name, of: os.open(name, of | flags, 0o666))


def append_line(file: BinaryIO, value: Any) -> None:
    """Appends in one unbuffered write, so that no reader sees half a
    line. A partial write means a full disk."""
    line = _text(value).encode() + b"\n"
    try:
        written = file.write(line)
    except OSError as error:
        error.filename = error.filename or file.name  # the error of a full disk has no file name
        raise
    if written != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)


def read_json(path: Path) -> Any:
    """Returns the document; None if there is none (yet), or none that can be read (see ``readable``)."""
    data = readable(path)
    try:
        return None if data is None else _documents.decode(data)
    except Refused:
        return None


def read_object(path: Path) -> dict[str, Any]:
    """Returns the JSON object in the file; empty if there is none."""
    document = read_json(path)
    return document if isinstance(document, dict) else {}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON lines of a file that may still be growing; none if it cannot be read."""
    return parse_lines(readable(path) or b"")


def parse_lines(data: bytes) -> list[dict[str, Any]]:
    """Parses JSON lines; skips one that is torn by a crash, too long or too deep."""
    entries = []
    for line in data.splitlines():
        try:
            entries.append(_entries.decode(line))
        except Refused:
            continue
    return entries


def readable(path: Path) -> bytes | None:
    """Returns the content of a regular file; None if there is none, or one that is too large to be a run's.

    A run's directory may be somebody else's: no link is followed, and no pipe is waited for.
    """
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not_regular(error):
            return None
        raise
    return data if len(data) <= MOST_BYTES else None


def not_regular(error: OSError) -> bool:
    """Did opening fail because it is a link, a pipe, a device or a directory?"""
    return isinstance(error, NotAFile) or error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR)
