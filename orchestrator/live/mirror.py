"""Copies the records of remote nodes to ``tmp/live/<node>`` of the run, as they are written, while wanted.

A copy has the same names, offsets and bytes as the file on the node, so whoever follows it can go on in the
collected record. Names are made from checked numbers and from the plan, never from what a node says.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from node_agent.telemetry.segment_files import SegmentName
from orchestrator.errors import RoveError
from orchestrator.foreign_names import path_inside
from orchestrator.runs.backend import Backend, Cursor, RemoteRecords
from orchestrator.runs.events import EventLog
from orchestrator.runs.run_directory import RunDirectory

FOLDER = "live"
LATEST = "latest.jpg"
PERIOD_S = 0.5
AGAIN_S = 3.0
"""A node that could not be read, or a folder without pictures, is looked at again after this time."""
MOST_PIECES = 8
"""Pieces of one node's telemetry in a period: a node that writes more falls behind, and is not lost."""
MOST_BYTES = 1 << 30
"""Copied of one node; the collected record has all of it."""
MOST_FILES = 10_000
LEAST_FREE = 1_000_000_000
LEAST_SHARE = 0.05
"""Nothing is copied while fewer bytes than ``LEAST_FREE`` are free, or, of a small disk, than this share."""
END_S = 3.0


class Mirror:
    """Copies as long as somebody holds ``wanted``; goes on where it was when wanted again."""

    def __init__(self, backend: Backend, directory: RunDirectory) -> None:
        self._backend = backend
        self._temporary = directory.temporary
        self._events = EventLog(directory.events)
        self._room = False
        self._has_said = False
        self._copies: dict[str, _Copy] = {}
        self._copying: dict[str, asyncio.Task[None]] = {}
        self._wanted = 0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def wanted(self) -> Iterator[None]:
        self._wanted += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_copying(), name="mirror")
        try:
            yield
        finally:
            self._wanted -= 1

    async def close(self) -> None:
        """Returns when nothing is written any more; a disk that hangs is not waited for."""
        tasks = [task for task in (self._task, *self._copying.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=END_S)

    async def _keep_copying(self) -> None:
        """Has a task for each node, so that one that hangs does not delay the others."""
        while self._wanted:
            if (records := self._backend.remote_records()) is not None:
                self._room = await self._has_room()
                for node in records.nodes():
                    self._copy_if_idle(node, records)
            await asyncio.sleep(PERIOD_S)

    def _copy_if_idle(self, node: str, records: RemoteRecords) -> None:
        task = self._copying.get(node)
        if task is not None and task.done() and not task.cancelled():
            task.exception()  # marks it as retrieved: a backend of another package may raise anything
        if task is None or task.done():
            self._copying[node] = asyncio.create_task(self._copy(node, records))

    async def _copy(self, node: str, records: RemoteRecords) -> None:
        if node not in self._copies:
            self._copies[node] = _Copy(node, self._temporary)
        while self._wanted:
            if self._room:
                await self._copies[node].renew(records)
            await asyncio.sleep(PERIOD_S)

    async def _has_room(self) -> bool:
        """The run itself needs the disk: its records matter more than a copy of them."""
        try:
            found = await asyncio.to_thread(shutil.disk_usage, self._temporary)
        except OSError:
            return False
        if found.free >= min(LEAST_FREE, LEAST_SHARE * found.total):
            return True
        if not self._has_said:
            self._has_said = True
            with suppress(OSError):
                error = (
                    "records of nodes elsewhere are not shown while they are written: the disk is almost full"
                )
                self._events.add("live", error=error)
        return False


class _Copy:
    """The copy of one node's records."""

    def __init__(self, node: str, temporary: Path) -> None:
        self._node = node
        self._temporary = temporary
        self._place = path_inside(temporary / FOLDER, node)
        self._cursor = Cursor()
        self._bytes = 0
        self._files = 0
        self._stamps: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        """By what is read: a folder, or ``""`` for telemetry."""

    async def renew(self, records: RemoteRecords) -> None:
        if self._is_due(""):
            try:
                await self._renew_segments(records)
            except (RoveError, OSError):
                self._put_off("")
                return
        for folder in records.picture_folders(self._node):
            if self._is_due(folder):
                try:
                    await self._renew_picture(records, folder)
                except (RoveError, OSError):
                    self._put_off(folder)

    async def _renew_segments(self, records: RemoteRecords) -> None:
        for _ in range(MOST_PIECES):
            if self._bytes >= MOST_BYTES or self._files >= MOST_FILES:
                return
            at, data = await records.tail(self._node, self._cursor)
            if not data:
                return
            name = SegmentName(at.boot, at.segment)
            self._files += at[:2] != self._cursor[:2]
            path = self._place / "segments" / str(name)
            await _finished(_write_at, self._temporary, path, at.offset, data)
            self._bytes += len(data)
            self._cursor = at._replace(offset=at.offset + len(data))

    async def _renew_picture(self, records: RemoteRecords, folder: str) -> None:
        stamp, data = await records.picture(self._node, folder, self._stamps.get(folder, 0))
        if data:
            target = path_inside(self._place, f"frames/{folder}/{LATEST}")
            await _finished(_replace, self._temporary, target, data)
            self._stamps[folder] = stamp
        elif not stamp:
            self._put_off(folder)

    def _is_due(self, what: str) -> bool:
        return asyncio.get_running_loop().time() >= self._not_before.get(what, 0.0)

    def _put_off(self, what: str) -> None:
        self._not_before[what] = asyncio.get_running_loop().time() + AGAIN_S


async def _finished(write: Callable[..., None], *arguments: Any) -> None:
    """Writes in a thread, and returns when that is done, also if it is cancelled meanwhile: a thread cannot
    be stopped, and what it writes to is removed next.
    """
    writing = asyncio.get_running_loop().run_in_executor(None, write, *arguments)
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing])
        if not writing.cancelled():
            writing.exception()  # marks it as retrieved
        raise


def _make_folders(temporary: Path, path: Path) -> None:
    """Makes the folders of a file; only the user can read them, as pictures of people may be there. Does not
    make ``temporary``, which goes with the run.
    """
    for folder in reversed([each for each in path.parents if temporary in each.parents]):
        folder.mkdir(0o700, exist_ok=True)


def _write_at(temporary: Path, path: Path, offset: int, data: bytes) -> None:
    _make_folders(temporary, path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        while data:
            written = os.pwrite(descriptor, data, offset)
            offset, data = offset + written, data[written:]
    finally:
        os.close(descriptor)


def _replace(temporary: Path, path: Path, data: bytes) -> None:
    """Writes so that a reader never sees half a picture; nobody needs it after a power cut."""
    _make_folders(temporary, path)
    draft = path.with_suffix(".tmp")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.replace(path)
