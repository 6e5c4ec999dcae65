"""Watches files that no attack may touch, around the one directory that it may write to.

Hostile names in listings aim at ``home``; ``inside`` stands for a run's directory of one node.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attacks.parser import Outside


class Canary:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.inside = root / "runs" / "siege" / "run-1" / "nodes" / "n1"
        self.other = root / "runs" / "siege" / "run-1" / "nodes" / "n2" / "segments" / "b0001-s000001.jsonl"
        for directory in (self.home / ".ssh", self.inside, self.other.parent, root / "etc"):
            directory.mkdir(parents=True)
        self.key = self.home / ".ssh" / "authorized_keys"
        for file in (self.key, self.other, root / "etc" / "passwd", self.inside.parent.parent / "spec.yaml"):
            file.write_text(f"canary {file.name}\n")
        self._before = self._state()

    def targets(self) -> tuple[Path, ...]:
        """Returns files that a name may aim at: some that exist, and one that does not."""
        return (self.key, self.other, self.home / "new-file", self.inside.parent.parent / "spec.yaml")

    def check(self) -> None:
        """Raises Outside if a file has changed, and restores everything."""
        after = self._state()
        if after != self._before:
            changed = sorted(
                name for name in {*after, *self._before} if after.get(name) != self._before.get(name)
            )
            self._before = after
            raise Outside(f"changed: {', '.join(changed[:5])}")

    def _state(self) -> dict[str, str]:
        return dict(self._walk(self.root))

    def _walk(self, directory: Path) -> Iterator[tuple[str, str]]:
        with os.scandir(directory) as entries:
            for entry in entries:
                path = Path(entry.path)
                if path == self.inside and not entry.is_symlink():
                    continue
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    yield entry.path, f"directory {mode:o}"
                    yield from self._walk(path)
                elif stat.S_ISREG(mode):
                    yield entry.path, f"{mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
                else:
                    yield entry.path, f"{mode:o}"
