"""Files that are either whole or not there: written beside their place, synced, then renamed into it."""

import errno
import json
import os
from pathlib import Path
from typing import Any, BinaryIO


def write_atomic(path: Path, data: bytes, mode: int = 0o666) -> None:
    """``mode`` as far as the umask leaves it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def append_line(file: BinaryIO, value: Any) -> None:
    """In one unbuffered write, so that no reader sees half; a disk that takes only a part of it is full."""
    line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
    try:
        written = file.write(line)
    except OSError as error:
        error.filename = error.filename or file.name  # the system does not say which disk is full
        raise
    if written != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)


def sync_directory(directory: Path) -> None:
    """Make renames and new names in ``directory`` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> Any:
    """The document, or None where there is none (yet) or it is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def parse_lines(data: bytes) -> list[dict[str, Any]]:
    """JSON lines of a file that may still be growing; a line torn by a crash is passed over."""
    entries = []
    for line in data.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
