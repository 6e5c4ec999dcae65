"""Messages of a stream of server-sent events, encoded once for all browsers.

A block holds changes with consecutive numbers. Its compressed form is a piece of a raw deflate stream that
stands for itself, so that the same bytes go into the gzip stream of every browser.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from orchestrator.runs.timeline import Change

GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_RAW_DEFLATE = -15
_LEVEL = 6
_AFTER = b"]}\n\n"
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Block:
    """Changes ``first`` to ``end``, the latter not included."""

    __slots__ = ("_body", "_cuts", "_packed", "_prefix", "end", "first")

    def __init__(self, first: int, end: int, prefix: bytes, body: bytes, cuts: tuple[int, ...]) -> None:
        self.first = first
        self.end = end
        self._prefix = prefix
        self._body: bytes | None = body
        self._packed: bytes | None = None
        self._cuts = cuts
        """Numbers of changes and their places in the body, in turn: where a message could end."""

    @property
    def size(self) -> int:
        """The bytes that it takes here."""
        return len(self._body or b"") + len(self._packed or b"")

    def raw(self) -> bytes:
        return self._prefix + self._elements() + _AFTER

    def packed(self) -> bytes:
        if self._packed is None:
            self._packed = pack(self.raw())
        return self._packed

    def seal(self) -> None:
        """Keeps only the compressed form."""
        self.packed()
        self._body = None

    def _elements(self) -> bytes:
        if self._body is not None:
            return self._body
        raw = zlib.decompressobj(_RAW_DEFLATE).decompress(self._packed or b"")
        return raw[len(self._prefix) : len(raw) - len(_AFTER)]

    def rest_after(self, number: int) -> bytes:
        """Returns the message without the changes up to ``number``, as far as messages ended there."""
        index = bisect_right(self._cuts[::2], number) - 1
        if index < 0:
            return self.raw()
        return self._prefix + self._elements()[self._cuts[2 * index + 1] :] + _AFTER


def messages(changes: Iterable[Change], most: int) -> Iterator[list[bytes]]:
    """Yields the changes encoded, as many at once as fit into ``most`` bytes, at least one."""
    some: list[bytes] = []
    size = 0
    for change in changes:
        encoded = _encode(change)
        if some and size + len(encoded) > most:
            yield some
            some, size = [], 0
        some.append(encoded)
        size += len(encoded) + 1
    if some:
        yield some


def block(first: int, changes: Sequence[bytes], cursor: int, now: float, ended: bool = False) -> Block:
    """``cursor`` is what a browser names to get what comes after this block."""
    return Block(first, first + len(changes), _prefix(cursor, now, ended), b",".join(changes), ())


def joined(blocks: Sequence[Block], cursor: int, now: float) -> Block:
    """One block in place of several that follow one another."""
    bodies: list[bytes] = []
    cuts: list[int] = []
    place = 0
    for each in blocks:
        if not (elements := each._elements()):
            continue
        bodies.append(elements)
        place += len(elements) + 1  # with the comma
        cuts += (each.end, place)
    first, end = blocks[0].first, blocks[-1].end
    return Block(first, end, _prefix(cursor, now, False), b",".join(bodies), tuple(cuts[:-2]))


def pack(raw: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_DEFLATE)
    return compressor.compress(raw) + compressor.flush(zlib.Z_SYNC_FLUSH)


def _prefix(cursor: int, now: float, ended: bool) -> bytes:
    facts = f'"cursor":{cursor},"now":{round(now, 3)},"ended":{"true" if ended else "false"}'
    return f'id: {cursor}\ndata: {{{facts},"changes":['.encode()
