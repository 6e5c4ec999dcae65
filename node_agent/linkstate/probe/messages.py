"""The messages of probers: a probe, and the answer to it. Decoding checks their bounds."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.linkstate.probe.tags import SIZE as TAG_SIZE
from node_agent.model.checked import Checked

HEADERS = 28
"""IPv4 and UDP headers, which are sent too and count for the budget."""
PAIR_BYTES = 1000
"""Of each packet of a pair, with headers: long enough that its time on the link stands out from noise."""
SINGLE_BYTES = 100
_MOST_BYTES = 2048
_MOST_KNOWN = 1024

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Session = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, lt=1e18)]
Node = Annotated[str, Meta(max_length=64)]


class Estimate(Struct, frozen=True, array_like=True):
    """What one node knows of its path to another. Latency in seconds, bandwidth in bit/s."""

    delivery_forward: Share
    delivery_backward: Share
    latency: Amount | None
    bandwidth: Amount | None


class Known(Struct, frozen=True, array_like=True):
    """The estimates of one node and their age, as far as the reporter knows it.

    It is an age and not a growing number, so a node that reports a wrong one cannot keep later reports from
    being believed.
    """

    node: Node
    age_ns: Number
    estimates: Annotated[dict[Node, Estimate], Meta(max_length=_MOST_KNOWN)]


class Probe(Struct, frozen=True, array_like=True, tag=1):
    """``session`` distinguishes a restarted prober from its earlier starts.

    ``in_pair``: 1 or 2 for the first or second of two sent back to back, 0 for a single one.
    """

    session: Session
    number: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    sent_ns: Number
    in_pair: Annotated[int, Meta(ge=0, le=2)]
    padding: bytes = b""


class Reply(Struct, frozen=True, array_like=True, tag=2):
    """How many of the last probes, up to ``newest``, have arrived, and how far apart the packets of a pair
    were.

    ``number`` counts the replies to this prober by this ``responder``, which changes after a restart, or when
    it has forgotten its counts. ``known``: what it knows of the network.
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
    """Encodes ``probe`` and pads it to ``size`` with headers and a tag; without padding if that is too
    few.
    """
    bare, room = len(encode(probe)), size - HEADERS - TAG_SIZE
    for length in range(room - bare, -1, -1):  # the length of the padding takes bytes of its own
        data = encode(msgspec.structs.replace(probe, padding=bytes(length)))
        if len(data) <= room:
            return data
    return encode(probe)
