"""Reads a node's list of its record: which files are fetched to where, and which are refused.

NUL bytes separate names, so that no name can be read as two or as none. A refused entry is left out and
counted; the other files are fetched.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from node_agent.model.refusals import Refusal, Refusals
from node_agent.supervisor.place import ENDED, RECORD
from orchestrator.foreign_names import UnsafeName, path_inside
from orchestrator.ssh.errors import CommandFailed

FILE = "file"
"""The value of ``Refusal.what`` for refused entries."""
MOST_BYTES = 64 << 30
"""Limit of one node's record: an experiment of hours leaves less."""
MOST_ENDED_BYTES = 64 * 1024

LIST = (
    'cd "$1" 2>/dev/null && [ -d record ] && [ ! -L record ] || exit 0; '
    "set -- record; [ -f ended.json ] && [ ! -L ended.json ] && set -- record ended.json; "
    "find \"$@\" ! -type d -printf '%y %s %p\\0'; status=$?; printf '\\0'; "
    'find "$@" -type f -exec sha256sum -z -- {} +; exit $status'
)
"""A script for the node's shell, with the place as argument. Exit status 0: all directories were read."""
_ENTRY = re.compile(rb"([a-zA-Z?]) ([0-9]{1,15}) (.+)", re.DOTALL)
_DIGESTED = re.compile(rb"([0-9a-f]{64})  (.+)", re.DOTALL)
_SEGMENT = re.compile(r"segments/b\d{4,9}-s\d{6,12}\.jsonl")


class Listed(NamedTuple):
    """A file on the node: ``name`` is its path in the place, ``target`` where it goes here."""

    name: str
    size: int
    digest: str
    target: Path


class Listing(NamedTuple):
    """The files to fetch. ``unreadable``: files of the record that the node could not read itself."""

    files: tuple[Listed, ...]
    unreadable: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def read_listing(node: str, output: bytes, into: Path) -> Listing:
    """Reads the list. ``into``: the node's directory here. Raises CommandFailed if a limit is exceeded."""
    sized, _, digested = output.partition(b"\0\0") if output[:1] != b"\0" else (b"", b"", output[1:])
    digests = dict(_digests(digested))
    refused = Refusals()
    files: dict[str, Listed] = {}
    unreadable = []
    for entry in sized.split(b"\0") if sized else ():
        match = _ENTRY.fullmatch(entry)
        kind, size, raw = match.groups() if match else (b"?", b"0", b"")
        name = raw.decode(errors="surrogateescape")  # invalid UTF-8 becomes unprintable
        try:
            target = _target(kind, name, int(size), into)
        except _NoPartOfRecord as problem:
            refused.add(FILE, node, str(problem))
            continue
        if digest := digests.get(raw):
            files[name] = Listed(name, int(size), digest, target)
        else:
            unreadable.append(name)
    for name in [name for name in files if any(str(above) in files for above in PurePosixPath(name).parents)]:
        del files[name]  # no file system has a file below a file
        refused.add(FILE, node, "name")
    listing = Listing(tuple(sorted(files.values())), tuple(sorted(unreadable)), tuple(refused))
    if listing.bytes > MOST_BYTES:
        size = f"{listing.bytes / 2**30:.0f} GiB, more than {MOST_BYTES / 2**30:.0f} GiB"
        raise CommandFailed(node, f"its record has {size}: nothing was fetched; see what fills it there")
    return listing


def batches(files: Sequence[Listed], most_bytes: int, most_files: int) -> Iterator[list[Listed]]:
    """Groups small files, as many as one command may fetch."""
    batch: list[Listed] = []
    size = 0
    for file in files:
        if batch and (size + file.size > most_bytes or len(batch) == most_files):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


class _NoPartOfRecord(Exception):
    """The entry is no part of a record. Its text is the word that refusals are counted by."""


def _target(kind: bytes, name: str, size: int, into: Path) -> Path:
    """Returns where the file goes. Raises _NoPartOfRecord.

    A record is ``ended.json`` and, below ``record``, segments by their own names, logs, and the files that
    operators leave as results, such as ``frames``. Hidden files are refused.
    """
    if kind != b"f":
        raise _NoPartOfRecord("not a file")
    kept_as = name
    if name == ENDED:
        if size > MOST_ENDED_BYTES:
            raise _NoPartOfRecord("size")
    else:
        top, _, kept_as = name.partition("/")
        parts = kept_as.split("/")
        ours = parts[0] == "segments" and not _SEGMENT.fullmatch(kept_as)
        if top != RECORD or ours or parts[0] == ENDED or any(part.startswith(".") for part in parts):
            raise _NoPartOfRecord("name")
    try:
        return path_inside(into, kept_as)
    except UnsafeName:
        raise _NoPartOfRecord("name") from None


def _digests(listed: bytes) -> Iterator[tuple[bytes, str]]:
    for line in listed.split(b"\0"):
        if match := _DIGESTED.fullmatch(line):
            yield match[2], match[1].decode()
