"""What a role must not forget, in files of one agent: its journal, and the operator's immutable state.

Each file is replaced as a whole, and begins with the SHA-256 of what follows. One that is torn, too large or
of another kind is refused.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from node_agent.model.checked import Checked, Refused

MOST_JOURNAL = 1024**2
_DIGEST = 32
J = TypeVar("J")


class Files(Generic[J]):
    """The files of one role. ``kind``: of its journal. ``name`` is the role's own and no path.

    Writing raises OSError. Reading raises Refused and OSError, and returns None if nothing was written.
    """

    def __init__(self, directory: Path, name: str, kind: type[J], most_state: int) -> None:
        if not name or name != Path(name).name or name.startswith("."):
            raise ValueError(f"{name!r} is no name of a file")
        self._journal, self._state = directory / f"{name}.journal", directory / f"{name}.state"
        self._decoder: Checked[J] = Checked(kind, MOST_JOURNAL, "msgpack")
        self._most_state = most_state

    def keep(self, journal: J) -> None:
        data = msgspec.msgpack.encode(journal)
        if len(data) > MOST_JOURNAL:
            raise OSError(f"a journal of {len(data)} bytes is larger than {MOST_JOURNAL}")
        _write(self._journal, data)

    def store(self, state: bytes) -> None:
        _write(self._state, state)

    def forget_state(self) -> None:
        with suppress(FileNotFoundError):
            self._state.unlink()

    def journal(self) -> J | None:
        return _read(self._journal, MOST_JOURNAL, self._decoder.decode)

    def state(self) -> bytes | None:
        return _read(self._state, self._most_state, bytes)


T = TypeVar("T")


def _write(path: Path, data: bytes) -> None:
    """Writes all of it or nothing: also if the machine stops. What could not be written takes no room."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(sha256(data).digest())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def _read(path: Path, most: int, decode: Callable[[bytes], T]) -> T | None:
    try:
        with path.open("rb") as file:
            data = file.read(_DIGEST + most + 1)
    except FileNotFoundError:
        return None
    if len(data) > _DIGEST + most:
        raise Refused("size", f"{path.name} is larger than {most} bytes")
    content = memoryview(data)[_DIGEST:]
    if sha256(content).digest() != data[:_DIGEST]:
        raise Refused("malformed", f"{path.name} is torn")
    return decode(bytes(content))
