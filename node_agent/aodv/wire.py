"""Encodes and decodes AODV's four messages (RFC 3561, section 5). A hello is a reply about its sender."""

import socket
import struct
from typing import NamedTuple

PORT = 654
RREQ, RREP, RERR, RREP_ACK = 1, 2, 3, 4
MAX_BROKEN = 255

_REQUEST = struct.Struct("!BBBBIIIII")
_REPLY = struct.Struct("!BBBBIIII")
_ERROR_HEAD = struct.Struct("!BBBB")
_BROKEN = struct.Struct("!II")
_GRATUITOUS, _DESTINATION_ONLY, _UNKNOWN = 0x20, 0x10, 0x08
_ACKNOWLEDGE = 0x40
_NO_DELETE = 0x80
_JOIN_REPAIR = 0xC0


class Malformed(ValueError):
    """The bytes are no AODV message."""


class Request(NamedTuple):
    """RREQ. ``destination_sequence`` is None if the originator knows none."""

    id: int
    hops: int
    destination: int
    destination_sequence: int | None
    originator: int
    originator_sequence: int
    gratuitous: bool = False
    destination_only: bool = False


class Reply(NamedTuple):
    """RREP. ``lifetime`` is in milliseconds; ``acknowledge`` asks for an RREP-ACK."""

    hops: int
    destination: int
    destination_sequence: int
    originator: int
    lifetime: int
    acknowledge: bool = False

    @property
    def is_hello(self) -> bool:
        return self.destination == self.originator


class Broken(NamedTuple):
    destination: int
    sequence: int


class Error(NamedTuple):
    """RERR. ``no_delete``: upstream nodes must keep their routes, because the sender repairs the link."""

    broken: tuple[Broken, ...]
    no_delete: bool = False


class Acknowledgement(NamedTuple):
    """RREP-ACK."""


Message = Request | Reply | Error | Acknowledgement


def kind_of(message: Message) -> str:
    """Returns the message's name in the counters."""
    match message:
        case Request():
            return "RREQ"
        case Reply():
            return "HELLO" if message.is_hello else "RREP"
        case Error():
            return "RERR"
        case Acknowledgement():
            return "RREP_ACK"


def encode(message: Message) -> bytes:
    match message:
        case Request(number, hops, destination, sequence, originator, own_sequence, gratuitous, only):
            flags = _GRATUITOUS * gratuitous | _DESTINATION_ONLY * only | _UNKNOWN * (sequence is None)
            return _REQUEST.pack(
                RREQ, flags, 0, hops, number, destination, sequence or 0, originator, own_sequence
            )
        case Reply(hops, destination, sequence, originator, lifetime, acknowledge):
            flags = _ACKNOWLEDGE * acknowledge
            return _REPLY.pack(RREP, flags, 0, hops, destination, sequence, originator, lifetime)
        case Error(broken, no_delete):
            if not 0 < len(broken) <= MAX_BROKEN:
                raise ValueError(f"a RERR names 1 to {MAX_BROKEN} destinations, not {len(broken)}")
            head = _ERROR_HEAD.pack(RERR, _NO_DELETE * no_delete, 0, len(broken))
            return head + b"".join(_BROKEN.pack(*each) for each in broken)
        case Acknowledgement():
            return bytes((RREP_ACK, 0))


def decode(data: bytes) -> Message:
    """Decodes a message. Ignores reserved bits, as the RFC asks, and skips extensions. Raises Malformed."""
    kind = data[0] if data else 0
    if kind == RREQ:
        _refuse_short(data, _REQUEST.size)
        _, flags, _, hops, number, destination, sequence, originator, own = _REQUEST.unpack_from(data)
        if flags & _JOIN_REPAIR:
            raise Malformed("a request for multicast")
        known = None if flags & _UNKNOWN else sequence
        return Request(
            number,
            hops,
            destination,
            known,
            originator,
            own,
            bool(flags & _GRATUITOUS),
            bool(flags & _DESTINATION_ONLY),
        )
    if kind == RREP:
        _refuse_short(data, _REPLY.size)
        _, flags, prefix, hops, destination, sequence, originator, lifetime = _REPLY.unpack_from(data)
        if flags & 0x80 or prefix & 0x1F:
            raise Malformed("a reply for multicast or a subnet")
        return Reply(hops, destination, sequence, originator, lifetime, bool(flags & _ACKNOWLEDGE))
    if kind == RERR:
        _refuse_short(data, _ERROR_HEAD.size)
        _, flags, _, count = _ERROR_HEAD.unpack_from(data)
        end = _ERROR_HEAD.size + count * _BROKEN.size
        if not count:
            raise Malformed("an error about nothing")
        _refuse_short(data, end)
        broken = tuple(Broken(*each) for each in _BROKEN.iter_unpack(data[_ERROR_HEAD.size : end]))
        return Error(broken, bool(flags & _NO_DELETE))
    if kind == RREP_ACK:
        _refuse_short(data, 2)
        return Acknowledgement()
    raise Malformed(f"message type {kind}")


def _refuse_short(data: bytes, size: int) -> None:
    if len(data) < size:
        raise Malformed(f"{len(data)} bytes where {size} are needed")


def dotted(address: int) -> str:
    return socket.inet_ntoa(address.to_bytes(4, "big"))


def number(text: str) -> int:
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")
    except OSError:
        raise ValueError(f"{text!r} is not an IPv4 address") from None
