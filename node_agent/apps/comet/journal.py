"""What a node writes down so that it survives being killed: entries, and now and then its whole state.

The file begins with a state; entries follow, each with its length and checksum. What was not written to its
end is left out when the file is read. If entries take more room than some copies of the state, a new file
replaces the old one. Entries are written before anything that follows from them leaves the node.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import msgspec

from node_agent.apps.comet.machine import Machine, NodeState
from node_agent.apps.comet.messages import Entry
from node_agent.apps.comet.node_plan import NodePlan

_HEAD = struct.Struct(">II")
"""Length and CRC-32 of what follows."""
SMALLEST_REWRITE = 256 * 1024
"""Bytes of entries below which the file is never written anew."""


class Unreadable(Exception):
    """A journal is not one of this node's plan."""


class Journal:
    """Of one node; ``opened`` gives it together with the node as it was. Begins with ``state``."""

    def __init__(self, path: Path, state: NodeState) -> None:
        self._path = path
        self._file = self._rewritten(state)
        self._entries = 0
        """Bytes of the entries; ``_state``: of the state before them."""

    def write(self, entry: Entry) -> None:
        """Raises OSError."""
        body = msgspec.msgpack.encode(entry)
        data = memoryview(_HEAD.pack(len(body), zlib.crc32(body)) + body)
        self._entries += len(data)
        while data:
            data = data[self._file.write(data) :]

    def tidy(self, machine: Machine) -> None:
        """Writes the file anew if it has become long. Raises OSError."""
        if self._entries > max(SMALLEST_REWRITE, 4 * self._state):
            self._file.close()
            self._file = self._rewritten(machine.state)
            self._entries = 0

    def close(self) -> None:
        self._file.close()

    def _rewritten(self, state: NodeState) -> FileIO:
        body = msgspec.msgpack.encode(state)
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(_HEAD.pack(len(body), zlib.crc32(body)) + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._state = len(body)
        return FileIO(self._path, "ab")


def opened(path: Path, plan: NodePlan) -> tuple[Machine, Journal]:
    """Returns a node as its journal left it, a new one if there is none. Raises OSError or Unreadable."""
    content = path.read_bytes() if path.exists() else b""
    bodies = _bodies(content)
    first = next(bodies, None)
    if first is None:
        if content:
            # It was replaced as a whole, so this is no torn write. A node that began anew would number its
            # messages from 1, and neighbours would take none of them.
            raise Unreadable(f"{path} is damaged: it does not begin with a whole state")
        machine = Machine(plan)
        return machine, Journal(path, machine.state)
    try:
        machine = Machine(plan, msgspec.msgpack.decode(first, type=NodeState))
        decoder = msgspec.msgpack.Decoder(Entry)
        for body in bodies:
            machine.apply(decoder.decode(body))
    except (msgspec.MsgspecError, LookupError) as error:
        raise Unreadable(f"{path} is no journal of this plan: {error}") from error
    machine.dropped.clear()  # it was told before
    machine.observed.clear()
    return machine, Journal(path, machine.state)


def _bodies(content: bytes) -> Iterator[bytes]:
    """Yields what was written whole."""
    place = 0
    while place + _HEAD.size <= len(content):
        length, checksum = _HEAD.unpack_from(content, place)
        body = content[place + _HEAD.size : place + _HEAD.size + length]
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        place += _HEAD.size + length
        yield body
