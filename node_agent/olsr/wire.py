"""Encodes and decodes OLSR packets for IPv4: RFC 3626 and olsrd's messages with link quality.

A packet is decoded as far as its message headers; bodies stay bytes until they are needed, because most
received messages are duplicates. Every accepted packet encodes to the same bytes again.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from ipaddress import IPv4Address
from itertools import starmap
from struct import Struct as Layout
from typing import Any, NamedTuple

from msgspec import Struct

HELLO, TC, MID, HNA, LQ_HELLO, LQ_TC = 1, 2, 3, 4, 201, 202

PACKET_HEADER_SIZE = 4
MESSAGE_HEADER_SIZE = 12

_PACKET = Layout("!HH")
_MESSAGE = Layout("!BBHIBBH")
_HELLO = Layout("!HBB")
_GROUP = Layout("!BBH")
_TC = Layout("!HBB")
_ADDRESS = Layout("!I")
_MEASURED = Layout("!I4s")
_NETWORK = Layout("!II")


class Malformed(ValueError):
    """These bytes are not OLSR."""


class Message(Struct, frozen=True, gc=False):
    kind: int
    vtime: int  # the byte on the wire: see validity.py
    originator: int
    ttl: int
    hops: int
    seqno: int
    body: bytes


class Packet(NamedTuple):
    seqno: int
    messages: tuple[Message, ...]


class Neighbour(NamedTuple):
    address: int
    quality: bytes  # four bytes for the link-quality plug-in; none in RFC 3626's messages


_neighbour = partial(tuple.__new__, Neighbour)
"""Makes a Neighbour of a tuple, without a call of Python code: most of what is decoded are neighbours."""


class Group(NamedTuple):
    code: int  # link type | neighbour type << 2
    neighbours: tuple[Neighbour, ...]


class Hello(NamedTuple):
    htime: int  # encoded like vtime
    willingness: int
    groups: tuple[Group, ...]


class Tc(NamedTuple):
    ansn: int
    lower_border: int  # both borders are 0 in an RFC 3626 TC
    upper_border: int
    neighbours: tuple[Neighbour, ...]


class Mid(NamedTuple):
    aliases: tuple[int, ...]


class Hna(NamedTuple):
    """``networks``: addresses and netmasks as sent. Not all netmasks are: see accepted_networks.py."""

    networks: tuple[tuple[int, int], ...]


def decode_packet(data: bytes) -> Packet:
    """Keeps messages of unknown kinds: RFC 3626 wants them forwarded."""
    size = len(data)
    if size < PACKET_HEADER_SIZE + MESSAGE_HEADER_SIZE:
        raise Malformed(f"{size} bytes hold no message")
    length, packet_seqno = _PACKET.unpack_from(data)
    if length != size:
        raise Malformed(f"a packet of {size} bytes says it has {length}")
    messages = []
    start = PACKET_HEADER_SIZE
    while start < size:
        body = start + MESSAGE_HEADER_SIZE
        if body > size:
            raise Malformed(f"{size - start} bytes after the last message")
        kind, vtime, message_size, originator, ttl, hops, seqno = _MESSAGE.unpack_from(data, start)
        start += message_size
        if not body <= start <= size:
            raise Malformed(f"a message of kind {kind} says it has {message_size} bytes")
        messages.append(Message(kind, vtime, originator, ttl, hops, seqno, data[body:start]))
    return Packet(packet_seqno, tuple(messages))


def encode_packet(seqno: int, messages: Sequence[Message]) -> bytes:
    parts = [b""]
    length = PACKET_HEADER_SIZE
    for each in messages:
        size = MESSAGE_HEADER_SIZE + len(each.body)
        header = _MESSAGE.pack(each.kind, each.vtime, size, each.originator, each.ttl, each.hops, each.seqno)
        parts.append(header)
        parts.append(each.body)
        length += size
    parts[0] = _PACKET.pack(length, seqno)
    return b"".join(parts)


def decode_hello(message: Message) -> Hello:
    measured = _is_measured(message.kind, HELLO, LQ_HELLO)
    body = message.body
    size = len(body)
    if size < _HELLO.size:
        raise Malformed(f"a HELLO body of {size} bytes")
    reserved, htime, willingness = _HELLO.unpack_from(body)
    if reserved:
        raise Malformed("a reserved field of a HELLO is not 0")
    groups = []
    start = _HELLO.size
    while start < size:
        first = start + _GROUP.size
        if first > size:
            raise Malformed(f"{size - start} bytes after the last group of a HELLO")
        code, reserved, group_size = _GROUP.unpack_from(body, start)
        if reserved:
            raise Malformed("a reserved field of a HELLO's group is not 0")
        start += group_size
        if not first <= start <= size:
            raise Malformed(f"a HELLO's group says it has {group_size} bytes")
        groups.append(Group(code, _decode_neighbours(body[first:start], measured)))
    return Hello(htime, willingness, tuple(groups))


def encode_hello(hello: Hello, kind: int) -> bytes:
    measured = _is_measured(kind, HELLO, LQ_HELLO)
    groups = [(code, _encode_neighbours(neighbours, measured)) for code, neighbours in hello.groups]
    return join_hello(hello.htime, hello.willingness, groups)


def join_hello(htime: int, willingness: int, groups: Iterable[tuple[int, bytes]]) -> bytes:
    """Encodes a HELLO of groups whose neighbours are encoded: see ``encode_neighbour``."""
    parts = [_HELLO.pack(0, htime, willingness)]
    for code, listed in groups:
        parts.append(_GROUP.pack(code, 0, _GROUP.size + len(listed)))
        parts.append(listed)
    return b"".join(parts)


def encode_neighbour(address: int, quality: bytes) -> bytes:
    return _ADDRESS.pack(address) + quality


def decode_tc(message: Message) -> Tc:
    measured = _is_measured(message.kind, TC, LQ_TC)
    body = message.body
    if len(body) < _TC.size:
        raise Malformed(f"a TC body of {len(body)} bytes")
    ansn, lower_border, upper_border = _TC.unpack_from(body)
    if not measured and (lower_border or upper_border):
        raise Malformed("a reserved field of a TC is not 0")
    return Tc(ansn, lower_border, upper_border, _decode_neighbours(body[_TC.size :], measured))


def encode_tc(tc: Tc, kind: int) -> bytes:
    measured = _is_measured(kind, TC, LQ_TC)
    header = _TC.pack(tc.ansn, tc.lower_border, tc.upper_border)
    return header + _encode_neighbours(tc.neighbours, measured)


def decode_mid(message: Message) -> Mid:
    _expect(message, MID)
    return Mid(tuple([address for (address,) in _each(_ADDRESS, message.body)]))


def encode_mid(mid: Mid) -> bytes:
    return b"".join(map(_ADDRESS.pack, mid.aliases))


def decode_hna(message: Message) -> Hna:
    _expect(message, HNA)
    return Hna(tuple(_each(_NETWORK, message.body)))


def encode_hna(hna: Hna) -> bytes:
    return b"".join(starmap(_NETWORK.pack, hna.networks))


def dotted(address: int) -> str:
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"


def number(text: str) -> int:
    """Returns an IPv4 address as a number. Raises ValueError if the text is not one."""
    return int(IPv4Address(text))


def _is_measured(kind: int, plain: int, measured: int) -> bool:
    if kind == measured:
        return True
    if kind == plain:
        return False
    raise Malformed(f"kind {kind} where {plain} or {measured} is wanted")


def _expect(message: Message, kind: int) -> None:
    if message.kind != kind:
        raise Malformed(f"kind {message.kind} where {kind} is wanted")


def _each(entry: Layout, data: bytes) -> Iterator[tuple[Any, ...]]:
    if len(data) % entry.size:
        raise Malformed(f"{len(data)} bytes are not a list of entries of {entry.size}")
    return entry.iter_unpack(data)


def _decode_neighbours(data: bytes, measured: bool) -> tuple[Neighbour, ...]:
    if measured:
        return tuple(map(_neighbour, _each(_MEASURED, data)))
    return tuple([Neighbour(address, b"") for (address,) in _each(_ADDRESS, data)])


def _encode_neighbours(neighbours: Sequence[Neighbour], measured: bool) -> bytes:
    data = b"".join(starmap(encode_neighbour, neighbours))
    if len(data) != len(neighbours) * (_MEASURED.size if measured else _ADDRESS.size):
        raise ValueError("a neighbour's quality has four bytes in LQ messages and none in others")
    return data
