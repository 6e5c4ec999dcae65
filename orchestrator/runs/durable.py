"""Makes the files of a run survive a power cut: whole directories, whoever wrote the files in them."""

import errno
import os
from pathlib import Path

from orchestrator.runs.files import sync_directory

_NOTHING_TO_SYNC = (errno.ELOOP, errno.ENXIO, errno.EINVAL)
"""Errors for links, sockets and pipes."""


def make_directory(path: Path) -> None:
    """Creates the directory and missing parents durably. An existing one is left as it is."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def sync_tree(directory: Path) -> None:
    """Syncs all files and names below ``directory``. Does not follow links."""
    for folder, _, names in os.walk(directory):
        for name in names:
            _sync_file(Path(folder) / name)
        sync_directory(Path(folder))


def _sync_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return  # removed meanwhile
    except OSError as error:
        if error.errno not in _NOTHING_TO_SYNC:
            raise
