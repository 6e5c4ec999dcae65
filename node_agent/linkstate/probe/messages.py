"""What probers say to each other: a probe, and the answer to it."""

import msgspec
from msgspec import Struct

HEADERS = 28
"""IPv4 and UDP: they are on the air too, and count for the budget."""
PAIR_BYTES = 1000
"""Each packet of a pair, headers included: long enough that its time on the link can be told from noise."""
SINGLE_BYTES = 100


class Estimate(Struct, frozen=True, array_like=True):
    """What one node knows of its way to another. Latency in seconds, bandwidth in bit/s."""

    delivery_forward: float
    delivery_backward: float
    latency: float | None
    bandwidth: float | None


class Known(Struct, frozen=True, array_like=True):
    """The estimates of one node; a higher version is a later one."""

    node: str
    version: int
    estimates: dict[str, Estimate]


class Probe(Struct, frozen=True, array_like=True, tag=1):
    """``session`` tells a restarted prober from its former self.

    ``in_pair``: 1 or 2 for the first or second of two sent back to back, 0 for one alone.
    """

    session: int
    number: int
    sent_ns: int
    in_pair: int
    padding: bytes = b""


class Reply(Struct, frozen=True, array_like=True, tag=2):
    """How many of the last probes, up to ``newest``, have come, and how far apart a pair was.

    ``number`` counts the replies to this prober by this ``responder``, who after a restart is another one.
    ``known`` is what it knows of the network.
    """

    session: int
    responder: int
    probe: int
    sent_ns: int
    in_pair: int
    number: int
    newest: int
    counted: int
    came: int
    gap_ns: int | None
    known: tuple[Known, ...] = ()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Probe | Reply] = msgspec.msgpack.Decoder(Probe | Reply)


def encode(message: Probe | Reply) -> bytes:
    return _ENCODER.encode(message)


def decode(data: bytes) -> Probe | Reply | None:
    """None for whatever is no such message."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def padded(probe: Probe, size: int) -> bytes:
    """As many bytes as ``size`` less the headers; as long as it is if that is too few."""
    bare = len(encode(probe))
    for length in range(size - HEADERS - bare, -1, -1):  # the length of the padding takes bytes of its own
        data = encode(msgspec.structs.replace(probe, padding=bytes(length)))
        if len(data) <= size - HEADERS:
            return data
    return encode(probe)
