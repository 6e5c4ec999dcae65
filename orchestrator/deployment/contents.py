"""The sources of a layer's files: Rove's own code, an installed distribution, or a wheel."""

import hashlib
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

import node_agent
from orchestrator.deployment.facts import NodeFacts
from orchestrator.deployment.tags import is_local

ALSO_KNOWN_AS = {
    "opencv-python-headless": (
        "opencv-contrib-python-headless",
        "opencv-python",
        "opencv-contrib-python",
        "opencv",
    )
}
"""Distributions that bring the same module."""
_DEAD_WEIGHT = (".pyc", ".pyx", ".pxd", ".c", ".h", ".cpp", ".hpp", ".a")
"""Files that no program opens; they are most of some wheels."""
_KEPT_METADATA = ("METADATA", "entry_points.txt")
_DATA = re.compile(r"[^/]+\.data/(?P<scheme>[^/]+)/(?P<rest>.+)")
_METADATA = re.compile(r"[^/]+\.(dist|egg)-info/(?P<file>.+)")


class Entry(NamedTuple):
    name: str
    """Relative to where Python looks for modules."""
    content: bytes | Path


class Contents(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def stamp(self) -> str:
        """Returns a text that changes whenever the files may have changed; cheap to compute."""
        ...

    def entries(self) -> Iterator[Entry]: ...


@dataclass(frozen=True)
class Sources:
    """The package ``node_agent``: the same code here and there, whatever is installed there."""

    name = "sources"
    version = ""

    def stamp(self) -> str:
        return _stamp(self._files())

    def entries(self) -> Iterator[Entry]:
        for name, path in self._files():
            yield Entry(name, path)

    def _files(self) -> list[tuple[str, Path]]:
        (folder,) = map(Path, node_agent.__path__)
        files = sorted(path for path in folder.rglob("*.py") if path.is_file())
        return [(path.relative_to(folder.parent).as_posix(), path) for path in files]


@dataclass(frozen=True)
class Installed:
    """A distribution of this machine's own environment."""

    name: str
    version: str
    only: tuple[str, ...]
    _found: Distribution

    @classmethod
    def find(cls, name: str, only: tuple[str, ...] = ()) -> "Installed | None":
        for each in (name, *ALSO_KNOWN_AS.get(name, ())):
            try:
                found = distribution(each)
            except PackageNotFoundError:
                continue
            if found.files:
                return cls(canonicalize_name(each), found.version, only, found)
        return None

    def tags(self) -> frozenset[Tag]:
        """Returns the tags of its wheel; if unknown, decides by whether it contains machine code."""
        text = self._found.read_text("WHEEL")
        if text is not None:
            tags = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Tag:")]
            return frozenset(tag for each in tags for tag in parse_tag(each))
        if not any(name.endswith(".so") for name, _ in self._files()):
            return parse_tag("py3-none-any")
        major, minor, _ = platform.python_version_tuple()
        return parse_tag(f"cp{major}{minor}-cp{major}{minor}-linux_{platform.machine()}")

    def can_run_with(self, facts: NodeFacts, tag: Tag) -> bool:
        """Says whether the node's C library is recent enough for what was built on this machine."""
        if not is_local(tag):
            return True
        name, version = platform.libc_ver()
        ours = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        return name == facts.libc and ours <= facts.libc_version

    def stamp(self) -> str:
        return _stamp(self._files())

    def entries(self) -> Iterator[Entry]:
        for name, path in self._files():
            yield Entry(name, path)

    def _files(self) -> list[tuple[str, Path]]:
        listed = ((file.as_posix(), Path(str(file.locate()))) for file in self._found.files or ())
        return sorted((name, path) for name, path in listed if _is_used(name, self.only) and path.is_file())


@dataclass(frozen=True)
class Wheel:
    path: Path
    name: str
    version: str
    tags: frozenset[Tag]
    only: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, only: tuple[str, ...] = ()) -> "Wheel | None":
        """Returns the wheel; None if the file's name is not that of a wheel."""
        try:
            name, version, _, tags = parse_wheel_filename(path.name)
        except ValueError:
            return None
        return cls(path, name, str(version), tags, only)

    @property
    def parsed_version(self) -> Version:
        return Version(self.version)

    def stamp(self) -> str:
        return _stamp([(self.path.name, self.path)])

    def entries(self) -> Iterator[Entry]:
        with zipfile.ZipFile(self.path) as archive:
            members = ((_installed_name(name), name) for name in archive.namelist() if not name.endswith("/"))
            for name, member in sorted(members):
                if name and _is_used(name, self.only):
                    yield Entry(name, archive.read(member))


def _installed_name(member: str) -> str:
    """Returns where a wheel's member is put; empty for scripts and headers."""
    if match := _DATA.fullmatch(member):
        return match["rest"] if match["scheme"] in ("purelib", "platlib") else ""
    return member


def _is_used(name: str, only: tuple[str, ...]) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        return False
    if only:
        return any(fnmatchcase(name, pattern) for pattern in only)
    if match := _METADATA.fullmatch(name):
        return match["file"] in _KEPT_METADATA
    return path.suffix not in _DEAD_WEIGHT


def _stamp(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        status = path.stat()
        digest.update(f"{name}\0{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
