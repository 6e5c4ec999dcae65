"""Collects a node's record: lists it with digests, fetches it, verifies it; the node keeps it until then.

It skips files that are here already and equal, so an interrupted collection continues where it was. If one
file cannot be fetched, it still fetches the others and then reports the failure.
"""

import asyncio
import errno
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import ValidationError, convert, to_builtins

from node_agent.model.refusals import Refusal
from orchestrator.backends.remote.listing import LIST, Listed, Listing, batches, read_listing
from orchestrator.foreign_text import one_line
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import read_lines, sync_directory, write_atomic
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import CommandFailed, DiskFull, TransferBroken, Unreachable
from orchestrator.ssh.transfer import no_room_here

LIST_S = 300.0
ATTEMPTS = 5
"""Attempts, each ended by a lost connection."""
ATTEMPTS_WITH_DAMAGED = 2
MOST_DAMAGED = 3
"""Limit of files in one attempt: a real record has fewer."""
RECONNECT_S = 10.0
_SMALL = 256 * 1024
"""Files up to this size are fetched many at once: a round trip each would take longer than the data."""
_MOST_AT_ONCE = 2 * 1024 * 1024
_NAMES_AT_ONCE = 500
_OWNER_ONLY = 0o600
_FOLDER_MODE = 0o700
"""Private to the user: pictures of people may be among the files."""
_CONCATENATE = 'cd "$1" && xargs -0 cat --'
_REMOVE = (
    'rm -rf -- "$1" || exit 1; run=$(dirname -- "$1"); '
    'rmdir -- "$run" "$(dirname -- "$run")" 2>/dev/null; true'
)
_HAS = 'if [ -d "$1" ]; then echo yes; else echo no; fi'


class Collected(NamedTuple):
    files: int
    bytes: int
    fetched: int
    """Bytes that were not here before."""
    refused: tuple[Refusal, ...] = ()
    """What the node lists and is no part of a record; it was not fetched."""


Progress = Callable[[int, int], None]
"""Called with the bytes that are here, and of all."""


async def collect(
    connection: Connection, place: str, into: Path, progress: Progress = lambda here, of: None
) -> Collected:
    """Fetches the record of a place into the node's directory ``into``. Raises SshError if it is not whole.

    It reconnects a few times if the connection breaks, where its owner allows that. It refuses and counts
    what is no part of a record.
    """
    lost = damaged = 0
    while True:
        await connection.ensure(RECONNECT_S)  # after this time the node counts as away
        try:
            return await _collect(connection, place, into, progress)
        except (Unreachable, TransferBroken):
            if connection.alive:
                damaged += 1
            else:
                lost += 1
            if lost == ATTEMPTS or damaged == ATTEMPTS_WITH_DAMAGED:
                raise


def note_refused(run: RunDirectory, node: str, refused: Sequence[Refusal]) -> None:
    """Notes in the run's events what was refused; the verdict names it."""
    if refused:
        EventLog(run.events).add("refused", node=node, refused=to_builtins(refused))


def refused_before(run: RunDirectory) -> list[Refusal]:
    """Returns from the run's events what all its collections refused so far."""
    found: list[Refusal] = []
    for event in read_lines(run.events):
        if event.get("kind") == "refused":
            with suppress(ValidationError):  # an event that Rove did not write
                found += convert(event.get("refused"), list[Refusal])
    return found


def collected_before(into: Path) -> Collected:
    """Returns what is here of a record that is no longer on its node."""
    sizes = [path.stat().st_size for path in into.rglob("*") if path.is_file()]
    return Collected(len(sizes), sum(sizes), 0)


async def has_place(connection: Connection, place: str) -> bool:
    return (await connection.output(["sh", "-c", _HAS, "sh", place])).strip() == "yes"


async def remove_place(connection: Connection, place: str) -> None:
    """Removes everything of the run on the node, and directories that are empty then. Raises SshError."""
    await connection.output(["sh", "-c", _REMOVE, "sh", place])


async def _collect(connection: Connection, place: str, into: Path, progress: Progress) -> Collected:
    listing, trouble = await _listed(connection, place, into)
    missing = await asyncio.to_thread(lambda: [file for file in listing.files if not _is_here(file)])
    _require_room(connection.host.name, into, sum(file.size for file in missing))
    total, fetched = listing.bytes, 0
    here = total - sum(file.size for file in missing)
    progress(here, total)
    broken: list[TransferBroken] = []
    small = [file for file in missing if file.size <= _SMALL]
    again: list[Listed] = []
    for batch in batches(small, _MOST_AT_ONCE, _NAMES_AT_ONCE):
        late = await _fetch_batch(connection, place, batch)
        again += late
        fetched += sum(file.size for file in batch if file not in late)
        progress(here + fetched, total)
    for file in (*again, *(file for file in missing if file.size > _SMALL)):
        try:
            await _fetch(connection, place, file)
        except TransferBroken as error:
            broken.append(error)
            if not connection.alive or len(broken) == MOST_DAMAGED:
                raise
            continue
        fetched += file.size
        progress(here + fetched, total)
    await asyncio.to_thread(_sync_directories, into)
    if broken:
        raise broken[0]
    if trouble:
        raise CommandFailed(connection.host.name, trouble)
    return Collected(len(listing.files), total, fetched, listing.refused)


async def _listed(connection: Connection, place: str, into: Path) -> tuple[Listing, str]:
    """Returns the files that can be fetched, and why some cannot. Raises SshError."""
    node = connection.host.name
    done = await connection.run(["sh", "-c", LIST, "sh", place], timeout=LIST_S)
    if done.truncated:
        raise CommandFailed(node, f"the list of its record is longer than {len(done.stdout)} bytes")
    listing = await asyncio.to_thread(read_listing, node, done.stdout, into)
    if listing.unreadable:
        first, count = one_line(listing.unreadable[0], 100), len(listing.unreadable)
        return listing, f"{count} of its files cannot be read there, such as '{first}'"
    if done.status != 0:
        errors = done.stderr.decode(errors="replace").strip() or f"status {done.status}"
        return listing, f"its record cannot be listed: {errors[:200]}"
    return listing, ""


async def _fetch(connection: Connection, place: str, file: Listed) -> None:
    with _reporting_full_disk(connection.host.name, file):
        _make_room(file.target)
        await connection.download(f"{place}/{file.name}", file.target, file.size, file.digest)


async def _fetch_batch(connection: Connection, place: str, batch: Sequence[Listed]) -> list[Listed]:
    """Fetches all files as one stream, split by the listed sizes. Returns those that did not arrive."""
    names = "\0".join(file.name for file in batch).encode()
    done = await connection.run(["sh", "-c", _CONCATENATE, "sh", place], timeout=LIST_S, input=names)
    late = []
    begin = 0
    for file in batch:
        content = done.stdout[begin : begin + file.size]
        begin += file.size
        if hashlib.sha256(content).hexdigest() != file.digest:
            late.append(file)
            continue
        with _reporting_full_disk(connection.host.name, file):
            _make_room(file.target)
            write_atomic(file.target, content, _OWNER_ONLY)
    return late


def _sync_directories(into: Path) -> None:
    """Syncs the directories made for the files, so that a power cut loses nothing that the node removes
    next."""
    if into.is_dir():
        made = [into, *(path for path in into.rglob("*") if path.is_dir())]
        for directory in (*made, into.parent, into.parent.parent):
            sync_directory(directory)


def _require_room(node: str, into: Path, size: int) -> None:
    """Raises DiskFull before anything is fetched."""
    existing = next(path for path in (into, *into.parents) if path.exists())
    if size > shutil.disk_usage(existing).free:
        raise DiskFull(node, no_room_here(into, size))


@contextmanager
def _reporting_full_disk(node: str, file: Listed) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(node, no_room_here(file.target.parent, file.size)) from error
        raise


def _make_room(target: Path) -> None:
    """Makes the file's directories; new ones are readable by the user only."""
    for directory in reversed([each for each in target.parents if not each.exists()]):
        directory.mkdir(_FOLDER_MODE, exist_ok=True)


def _is_here(file: Listed) -> bool:
    path = file.target
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.digest
