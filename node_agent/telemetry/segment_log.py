"""Writes telemetry: an append-only log of JSON lines, split into segments.

Each record gets the next ``seq`` of this boot, so that a reader can prove that nothing is missing. Lines are
buffered within fixed bounds; a failed write keeps what it could not write.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from node_agent.model.telemetry import Event
from node_agent.telemetry.segment_files import SegmentName, segment_names, sync_directory


class LogError(Exception):
    """The log could not be written (disk full, directory gone); lines written before are safe."""


class SegmentLog:
    def __init__(
        self,
        directory: Path,
        run: str,
        node: str,
        clock: Callable[[], int],
        max_bytes: int = 16 * 1024 * 1024,
        buffer_records: int = 256,
        buffer_bytes: int = 64 * 1024,
    ) -> None:
        self.directory = directory
        self._clock = clock
        self._max_bytes = max_bytes
        self._buffer_records = buffer_records
        self._buffer_bytes = buffer_bytes
        self._encode = msgspec.json.Encoder().encode
        self._buffer = bytearray()
        self._buffered = 0
        self._seq = 0
        self._fd: int | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.boot = 1 + max((name.boot for name in segment_names(directory)), default=0)
            self._segment = 0
            self._open_next()
            # Power may fail before the first rotation, and this boot must not be forgotten.
            sync_directory(directory)
        except OSError as error:
            raise LogError(f"cannot start a telemetry log in {directory}: {error}") from error
        self._run = run
        self._node = node
        self._prefix = self._prefix_of("")

    @property
    def closed(self) -> bool:
        return self._fd is None

    @property
    def records(self) -> int:
        """How many records this boot has taken."""
        return self._seq

    @property
    def buffered_bytes(self) -> int:
        """How much of them the operating system does not have yet."""
        return len(self._buffer)

    def append(self, event: Event) -> None:
        """Records what the agent itself reports.

        If the buffer is full and cannot be written, raises LogError and does not take the event.
        """
        self._write(self._prefix, event)

    def recorder(self, app: str) -> Callable[[Event], None]:
        """Returns a function that records what application ``app`` reports. It raises LogError like
        ``append``.
        """
        return cast("Callable[[Event], None]", self.writer(app))

    def writer(self, app: str) -> Callable[[Event], int]:
        """Returns a function like ``recorder``'s that also returns the record's time in nanoseconds."""
        return partial(self._write, self._prefix_of(app))

    def _prefix_of(self, app: str) -> bytes:
        """Returns how each line of an application begins."""
        envelope = {"run": self._run, "node": self._node, "boot": self.boot, "app": app}
        return self._encode(envelope)[:-1] + b',"seq":'

    def _write(self, prefix: bytes, event: Event) -> int:
        if self._fd is None:
            raise LogError(f"the telemetry log in {self.directory} is closed")
        if self._buffered >= self._buffer_records or len(self._buffer) >= self._buffer_bytes:
            self.flush()
        if self._size >= self._max_bytes:
            self._rotate()
        body = self._encode(event)
        t_ns = self._clock()
        line = b'%b%d,"t_ns":%d,%b\n' % (prefix, self._seq, t_ns, body[1:])
        self._buffer += line
        self._buffered += 1
        self._size += len(line)
        self._seq += 1
        return t_ns

    def flush(self) -> None:
        """Passes buffered lines to the operating system. After a LogError it can be tried again."""
        if self._fd is None:
            return
        try:
            while self._buffer:
                # After a short write and an error the rest of the line stays in the buffer, so that a later
                # flush continues the line instead of tearing it.
                written = os.write(self._fd, self._buffer)
                del self._buffer[:written]
        except OSError as error:
            raise LogError(f"cannot write telemetry to {self.directory}: {error}") from error
        self._buffered = 0

    def close(self) -> None:
        """Flushes, makes durable, closes. May be repeated."""
        if self._fd is None:
            return
        try:
            self.flush()
            self._sync()
        finally:
            os.close(self._fd)
            self._fd = None

    def _rotate(self) -> None:
        self.flush()
        self._sync()
        full = self._fd
        try:
            self._open_next()
        except OSError as error:
            raise LogError(f"cannot open a telemetry segment in {self.directory}: {error}") from error
        if full is not None:
            os.close(full)

    def _open_next(self) -> None:
        name = SegmentName(self.boot, self._segment + 1)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.directory / str(name), flags, 0o644)
        self._segment = name.index
        self._size = 0

    def _sync(self) -> None:
        if self._fd is None:
            return
        try:
            os.fsync(self._fd)
            sync_directory(self.directory)
        except OSError as error:
            raise LogError(f"cannot make telemetry durable in {self.directory}: {error}") from error
