"""Bringing a node's record here: listed there with digests, fetched, verified; the node keeps it until then.

What is here already and equal is not fetched again, so a collection that broke off goes on where it was.
"""

import asyncio
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from node_agent.keeping.place import ENDED
from orchestrator.backends.remote.site import RECORD
from orchestrator.lifecycle.files import sync_directory, write_atomic
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import CommandFailed, TransferBroken, Unreachable

LIST_S = 300.0
ATTEMPTS = 5
RECONNECT_S = 10.0
_SMALL = 256 * 1024
"""Such files are fetched many at once: a round trip each would take longer than they do."""
_MOST_AT_ONCE = 2 * 1024 * 1024
_NAMES_AT_ONCE = 500
_LIST = (
    'cd "$1" 2>/dev/null && [ -d record ] || exit 0; '
    'files=record; [ -e ended.json ] && files="record ended.json"; '
    "find $files -type f -exec stat -c '%s %n' -- {} + && echo && find $files -type f -exec sha256sum -- {} +"
)
_REMOVE = (
    'rm -rf -- "$1" || exit 1; run=$(dirname -- "$1"); '
    'rmdir -- "$run" "$(dirname -- "$run")" 2>/dev/null; true'
)
_HAS = 'if [ -d "$1" ]; then echo yes; else echo no; fi'


class Listed(NamedTuple):
    """A file on the node, by its path in the place."""

    name: str
    size: int
    digest: str

    @property
    def kept_as(self) -> str:
        """Its path below the node's directory here."""
        return self.name.removeprefix(f"{RECORD}/")


class Collected(NamedTuple):
    files: int
    bytes: int
    fetched: int
    """Bytes that were not here before."""


Progress = Callable[[int, int], None]
"""Told of the bytes that are here, and of all."""


def read_listing(host: str, output: str) -> list[Listed]:
    """Raises CommandFailed for what no node of ours would list."""
    sized, _, digested = output.partition("\n\n")
    sizes = {
        name: int(size) for size, _, name in (line.partition(" ") for line in sized.splitlines() if line)
    }
    found = []
    for line in digested.splitlines():
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        known = name in sizes and len(digest) == 64
        if not known or path.is_absolute() or ".." in path.parts or path.parts[0] not in (RECORD, ENDED):
            raise CommandFailed(host, f"its record holds what cannot be collected: {line[:100]!r}")
        found.append(Listed(name, sizes[name], digest))
    if len(found) != len(sizes):
        raise CommandFailed(host, "its record changes while it is listed")
    return sorted(found)


def batches(files: Sequence[Listed]) -> Iterator[list[Listed]]:
    """Small files together, as many as one command may bring."""
    batch: list[Listed] = []
    for file in files:
        full = sum(each.size for each in batch) + file.size > _MOST_AT_ONCE or len(batch) == _NAMES_AT_ONCE
        if batch and full:
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


async def collect(
    connection: Connection, place: str, into: Path, progress: Progress = lambda here, of: None
) -> Collected:
    """The record of the place, into the node's directory ``into``; whole, or it raises SshError.

    A connection that breaks is made again a few times, if whoever made it lets it.
    """
    for attempt in range(1, ATTEMPTS + 1):
        await connection.ensure(RECONNECT_S)  # a node that cannot be reached for so long is away
        try:
            return await _collect(connection, place, into, progress)
        except (Unreachable, TransferBroken):
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def collected_before(into: Path) -> Collected:
    """What is here of a record that is no longer on its node."""
    sizes = [path.stat().st_size for path in into.rglob("*") if path.is_file()]
    return Collected(len(sizes), sum(sizes), 0)


async def has_place(connection: Connection, place: str) -> bool:
    return (await connection.output(["sh", "-c", _HAS, "sh", place])).strip() == "yes"


async def remove_place(connection: Connection, place: str) -> None:
    """Everything of the run on the node, and directories that are empty then. Raises SshError."""
    await connection.output(["sh", "-c", _REMOVE, "sh", place])


async def _collect(connection: Connection, place: str, into: Path, progress: Progress) -> Collected:
    name = connection.host.name
    done = await connection.run(["sh", "-c", _LIST, "sh", place], timeout=LIST_S)
    if done.status != 0 or done.truncated:
        told = done.stderr.decode(errors="replace").strip() or "the list of its record is too long"
        raise CommandFailed(name, told)
    listed = read_listing(name, done.stdout.decode(errors="replace"))
    missing = [file for file in listed if not _is_here(into / file.kept_as, file)]
    total, fetched = sum(file.size for file in listed), 0
    here = total - sum(file.size for file in missing)
    progress(here, total)
    small = [file for file in missing if file.size <= _SMALL]
    for batch in batches(small):
        await _fetch_batch(connection, place, batch, into)
        fetched += sum(file.size for file in batch)
        progress(here + fetched, total)
    for file in missing:
        if file.size > _SMALL:
            await _fetch(connection, place, file, into)
            fetched += file.size
            progress(here + fetched, total)
    await asyncio.to_thread(_sync_directories, into)
    return Collected(len(listed), total, fetched)


async def _fetch(connection: Connection, place: str, file: Listed, into: Path) -> None:
    target = _room(into, file)
    if await connection.download(f"{place}/{file.name}", target) != file.digest:
        raise TransferBroken(connection.host.name, f"{file.name}: it was written to while it was collected")


async def _fetch_batch(connection: Connection, place: str, batch: Sequence[Listed], into: Path) -> None:
    names = "\0".join(file.name for file in batch).encode()
    argv = ["tar", "-c", "-f", "-", "-C", place, "--null", "-T", "-"]
    done = await connection.run(argv, timeout=LIST_S, input=names)
    try:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            arrived = {entry.name: archive.extractfile(entry) for entry in archive if entry.isfile()}
            contents = {name: stream.read() for name, stream in arrived.items() if stream is not None}
    except tarfile.TarError as error:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        raise TransferBroken(
            connection.host.name, told[-1] if told else f"a damaged archive: {error}"
        ) from error
    for file in batch:
        content = contents.get(file.name, b"")
        if hashlib.sha256(content).hexdigest() != file.digest:
            raise TransferBroken(
                connection.host.name, f"{file.name}: arrived damaged, or was written to meanwhile"
            )
        write_atomic(_room(into, file), content)


def _sync_directories(into: Path) -> None:
    """What is removed on the node next must be found here after a power cut: files are synced, and so must be
    the directories that were made for them."""
    if into.is_dir():
        made = [into, *(path for path in into.rglob("*") if path.is_dir())]
        for directory in (*made, into.parent, into.parent.parent):
            sync_directory(directory)


def _room(into: Path, file: Listed) -> Path:
    target = into / file.kept_as
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _is_here(path: Path, file: Listed) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.digest
