"""What probers say to each other: a probe, and the answer to it. Both are within bounds when decoded."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.linkstate.probe.tags import SIZE as TAG_SIZE
from node_agent.model.checked import Checked

HEADERS = 28
"""IPv4 and UDP: they are on the air too, and count for the budget."""
PAIR_BYTES = 1000
"""Each packet of a pair, headers included: long enough that its time on the link can be told from noise."""
SINGLE_BYTES = 100
_MOST_BYTES = 2048
_MOST_KNOWN = 1024

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Session = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, lt=1e18)]
Node = Annotated[str, Meta(max_length=64)]


class Estimate(Struct, frozen=True, array_like=True):
    """What one node knows of its way to another. Latency in seconds, bandwidth in bit/s."""

    delivery_forward: Share
    delivery_backward: Share
    latency: Amount | None
    bandwidth: Amount | None


class Known(Struct, frozen=True, array_like=True):
    """The estimates of one node, and how old they are, as far as the one who tells them knows.

    An age, and not a number that grows: who tells a wrong one cannot keep later news from being believed.
    """

    node: Node
    age_ns: Number
    estimates: Annotated[dict[Node, Estimate], Meta(max_length=_MOST_KNOWN)]


class Probe(Struct, frozen=True, array_like=True, tag=1):
    """``session`` tells a restarted prober from its former self.

    ``in_pair``: 1 or 2 for the first or second of two sent back to back, 0 for one alone.
    """

    session: Session
    number: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    sent_ns: Number
    in_pair: Annotated[int, Meta(ge=0, le=2)]
    padding: bytes = b""


class Reply(Struct, frozen=True, array_like=True, tag=2):
    """How many of the last probes, up to ``newest``, have come, and how far apart a pair was.

    ``number`` counts the replies to this prober by this ``responder``, which is another one after a
    restart, or when it has forgotten what it counted.
    ``known`` is what it knows of the network.
    """

    session: Session
    responder: Session
    probe: Number
    sent_ns: Number
    in_pair: Annotated[int, Meta(ge=0, le=2)]
    number: Number
    newest: Number
    counted: Number
    came: Number
    gap_ns: Number | None
    known: Annotated[tuple[Known, ...], Meta(max_length=_MOST_KNOWN)] = ()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: Checked[Probe | Reply] = Checked(Probe | Reply, _MOST_BYTES, "msgpack")


def encode(message: Probe | Reply) -> bytes:
    return _ENCODER.encode(message)


def decode(data: bytes) -> Probe | Reply:
    """Raises Refused."""
    return _DECODER.decode(data)


def padded(probe: Probe, size: int) -> bytes:
    """As many bytes as ``size`` less the headers and a tag; as long as it is if that is too few."""
    bare, room = len(encode(probe)), size - HEADERS - TAG_SIZE
    for length in range(room - bare, -1, -1):  # the length of the padding takes bytes of its own
        data = encode(msgspec.structs.replace(probe, padding=bytes(length)))
        if len(data) <= room:
            return data
    return encode(probe)
