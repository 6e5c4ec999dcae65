"""Opens files and folders of a run's directory, which may be foreign: no link is followed below it."""

import os
import stat
from itertools import islice
from pathlib import Path

MOST_LISTED = 20_000
"""Names of one folder that are looked at, if nothing else is said."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_inside(root: Path, path: Path, folder: bool = False) -> int | None:
    """Returns a descriptor of a regular file, or of a folder; None if there is none that can be opened.

    ``root`` itself may be reached by a link; from there on, every part of ``path`` is opened by itself.
    """
    flags = _FOLDER | os.O_NOFOLLOW if folder else _FILE
    wanted = stat.S_ISDIR if folder else stat.S_ISREG
    try:
        *above, name = path.relative_to(root).parts
        place = os.open(root, _FOLDER)
        try:
            for part in above:
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=place)
                os.close(place)
                place = inner
            found = os.open(name, flags, dir_fd=place)
        finally:
            os.close(place)
    except (OSError, ValueError):
        return None
    if wanted(os.fstat(found).st_mode):
        return found
    os.close(found)
    return None


def names_inside(root: Path, folder: Path, most: int = MOST_LISTED) -> list[str]:
    """Returns at most ``most`` of the names in a folder; none if it cannot be opened."""
    descriptor = open_inside(root, folder, folder=True)
    if descriptor is None:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []
    finally:
        os.close(descriptor)
