"""Reads files that a user names: whole and up to a limit, or refuses them with a reason that can be shown."""

import gzip
import io
import stat
import zlib
from pathlib import Path

from orchestrator.errors import BadInput
from orchestrator.spec.problems import did_you_mean

MOST_BYTES = 100_000_000
"""The limit for a file that a section names, after decompression: its waypoints must fit into memory."""


class Unreadable(BadInput):
    """The file does not exist or cannot be read."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


def read_bytes(path: Path, most: int) -> bytes:
    """Returns the content of a regular file of at most ``most`` bytes; opens nothing else."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise Unreadable("this is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("not a regular file")
        if status.st_size > most:
            size = f"{status.st_size / 1e6:.1f} MB"
            raise Unreadable(
                f"too large: {size}, at most {most / 1e6:g} MB is read", "is this the right file?"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise Unreadable("no such file", _neighbour(path)) from None
    except PermissionError:
        raise Unreadable("no permission to read this file") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {(error.strerror or 'unknown reason').lower()}") from None
    except ValueError:
        raise Unreadable("not a usable file name") from None


def text_of(name: str, content: bytes, most: int = MOST_BYTES) -> str:
    """Returns a file's content as text, decompressed if the name ends in .gz. Raises ``Unreadable``."""
    try:
        if name.lower().endswith(".gz"):
            with gzip.open(io.BytesIO(content)) as stream:
                content = stream.read(most + 1)
        if len(content) > most:
            raise Unreadable(f"larger than {most / 1e6:g} MB, more than is read")
        return content.decode("utf-8-sig")  # spreadsheets write a byte-order mark at the start of files
    except UnicodeDecodeError as error:
        raise Unreadable(f"cannot be read: byte {error.start} is not UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"cannot be read: {error}") from None


def _neighbour(path: Path) -> str:
    try:
        siblings = sorted(p.name for p in path.parent.iterdir() if p.suffix == path.suffix)
    except OSError:
        return ""
    return did_you_mean(path.name, siblings)
