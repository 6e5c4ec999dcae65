"""Simulates a disk that loses unsynced data: what is left of a directory after a power cut, by the recorded
fsyncs.

Strict: contents as of the last fsync of each file, names as of the last fsync of each directory. Torn: the
system may also have written some of the rest, in any order, and ends of files may be zeros.
"""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

from benchmarks.drilling.drill import Drill

HOOKS = Path(__file__).parent / "hooks"
_MOST_ZEROS = 4096
Entries = dict[str, list[Any]]
"""By name: file, directory or link, and its inode number or target."""


def hooked(drill: Drill, **variables: str) -> dict[str, str]:
    """Returns the environment in which Python loads the hook."""
    return {"PYTHONPATH": f"{HOOKS}:{drill.environment()['PYTHONPATH']}", **variables}


class Disk:
    def __init__(self, shadow: Path, root: Path) -> None:
        """Takes everything below ``root`` so far as durable."""
        self._shadow = shadow
        self._root = root
        for part in ("directories", "files", "held"):
            (shadow / part).mkdir(parents=True)
        for directory, _, _ in os.walk(root):
            self._note(Path(directory))

    @property
    def variable(self) -> dict[str, str]:
        return {"ROVE_DRILL_DISK": f"{self._shadow}:{self._root}"}

    def cut_power(self, torn: random.Random | None = None) -> None:
        """Leaves the directory as it is after a power cut; no process may write there any more."""
        after = self._root.with_name(f"{self._root.name}.after")
        self._restore(self._root, self._root.stat().st_ino, after, torn)
        shutil.rmtree(self._root)
        after.rename(self._root)

    def _note(self, directory: Path) -> None:
        known: dict[str, tuple[str, int]] = {}
        for entry in directory.iterdir():
            kind = "directory" if entry.is_dir() else "file"
            known[entry.name] = (kind, entry.stat().st_ino)
            if kind == "file":
                shutil.copyfile(entry, self._shadow / "files" / str(entry.stat().st_ino))
        (self._shadow / "directories" / str(directory.stat().st_ino)).write_text(json.dumps(known))

    def _restore(self, now: Path, number: int, after: Path, torn: random.Random | None) -> None:
        after.mkdir()
        known = self._shadow / "directories" / str(number)
        entries = json.loads(known.read_text()) if known.exists() else {}
        if torn is not None:
            entries = self._mixed(entries, now, torn)
        for name, (kind, what) in entries.items():
            place = after / name
            if kind == "link":
                place.symlink_to(what)
            elif kind == "directory":
                self._restore(now / name, what, place, torn)
            else:
                place.write_bytes(self._content(what, now / name, torn))

    def _mixed(self, entries: Entries, now: Path, torn: random.Random) -> Entries:
        """Applies some of the names that were made, replaced or removed since."""
        current: Entries = {}
        for entry in sorted(now.iterdir()) if now.is_dir() else []:
            kind = "link" if entry.is_symlink() else "directory" if entry.is_dir() else "file"
            current[entry.name] = [kind, str(entry.readlink()) if kind == "link" else entry.stat().st_ino]
        mixed = {}
        for name in sorted({*entries, *current}):
            choice = (entries if torn.random() < 0.5 else current).get(name)
            if choice is not None:
                mixed[name] = choice
        return mixed

    def _content(self, number: int, now: Path, torn: random.Random | None) -> bytes:
        synced = self._shadow / "files" / str(number)
        durable = synced.read_bytes() if synced.exists() else b""
        if torn is None or not now.is_file() or now.stat().st_ino != number:
            return durable
        current = now.read_bytes()
        if not current.startswith(durable):
            return durable
        rest = current[len(durable) :]
        some = rest[: torn.randint(0, len(rest))]
        zeros = bytes(min(len(rest) - len(some), _MOST_ZEROS)) if torn.random() < 0.3 else b""
        return durable + some + zeros
