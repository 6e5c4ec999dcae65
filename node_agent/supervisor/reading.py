"""Reads a piece of the node's own record for its owner: the tail of a segment, or a sink's latest picture.

Names are made from numbers, or are the name of one folder; no link is followed.
"""

import errno
import os
from pathlib import Path
from typing import NamedTuple

from node_agent.supervisor.commands import MOST_PICTURE, MOST_TAIL
from node_agent.telemetry.segment_files import SegmentName, open_regular, segment_names

SEGMENTS = "segments"
FRAMES = "frames"
LATEST = "latest.jpg"


class Piece(NamedTuple):
    """``at``: which bytes these are (see the command)."""

    at: tuple[int, ...]
    data: bytes


def read_segment(record: Path, name: SegmentName, offset: int) -> Piece:
    """Returns what follows; no bytes if there is nothing yet. Raises OSError."""
    data = _tail(record / SEGMENTS / str(name), offset)
    if not data:
        # Looked for only now: a segment is complete before the next one exists.
        later = [each for each in segment_names(record / SEGMENTS) if each > name]
        if later and not (data := _tail(record / SEGMENTS / str(name), offset)):
            name, offset = later[0], 0
            data = _tail(record / SEGMENTS / str(name), offset)
    return Piece((name.boot, name.index, offset), data)


def read_picture(record: Path, folder: str, stamp: int) -> Piece:
    """Returns the picture and its stamp; no bytes if it is the same as before. Raises OSError."""
    place = record / FRAMES / folder
    if (record / FRAMES).is_symlink() or place.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        file = open_regular(place / LATEST)
    except FileNotFoundError:
        return Piece((0,), b"")
    with file:
        status = os.fstat(file.fileno())
        if status.st_mtime_ns == stamp:
            return Piece((stamp,), b"")
        data = file.read(MOST_PICTURE + 1)
    if len(data) > MOST_PICTURE:
        raise OSError(errno.EFBIG, f"the picture has more than {MOST_PICTURE} bytes")
    return Piece((status.st_mtime_ns,), data)


def _tail(path: Path, offset: int) -> bytes:
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return b""
    with file:
        file.seek(offset)
        return file.read(MOST_TAIL)
