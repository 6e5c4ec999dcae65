"""What one HELLO means to the node that hears it, as a value; and the HELLO a node says itself."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from node_agent.olsr import quality, validity, wire
from node_agent.olsr.quality import Metric

UNSPECIFIED, ASYMMETRIC, SYMMETRIC, LOST = 0, 1, 2, 3  # link types
NOT_NEIGHBOUR, SYMMETRIC_NEIGHBOUR, MPR_NEIGHBOUR = 0, 1, 2  # neighbour types

_LINK_ORDER = (UNSPECIFIED, LOST, ASYMMETRIC, SYMMETRIC)
_CODES = tuple(link | kind << 2 for kind in (0, 1, 2) for link in _LINK_ORDER)
_HELLO_HEADER, _GROUP_HEADER = 4, 4


class Heard(NamedTuple):
    hello_ns: int  # between two HELLOs of the neighbour, as it says
    willingness: int
    link: int | None  # how it sees the link to us; None: not mentioned
    quality: int  # how well it receives us
    selects_us: bool | None  # as a relay; None: not mentioned
    listed: tuple[tuple[int, int], ...]  # its other neighbours, with costs
    gone: tuple[int, ...]  # those that are its neighbours no longer, or not yet


def summarise(hello: wire.Hello, own: int, all_own: frozenset[int], metric: Metric) -> Heard:
    """``own`` is the address of the interface that heard it."""
    link: int | None = None
    neighbour_quality = 0
    selects: bool | None = None
    listed: dict[int, int] = {}
    gone: list[int] = []
    for code, neighbours in hello.groups:
        link_type, kind = code & 3, code >> 2
        for address, packed in neighbours:
            measured = metric.unpack(packed)
            if address in all_own:
                selects = bool(selects) or kind == MPR_NEIGHBOUR
                if address == own and link_type != UNSPECIFIED:
                    link, neighbour_quality = link_type, measured[0]
            elif kind in (SYMMETRIC_NEIGHBOUR, MPR_NEIGHBOUR):
                cost = quality.cost(*measured)
                listed[address] = min(cost, listed.get(address, cost))
            elif kind == NOT_NEIGHBOUR:
                gone.append(address)
    return Heard(
        hello_ns=int(validity.seconds(hello.htime) * 1e9),
        willingness=min(hello.willingness, 7),
        link=link,
        quality=neighbour_quality,
        selects_us=selects,
        listed=tuple(listed.items()),
        gone=tuple(address for address in gone if address not in listed),
    )


class Mention(NamedTuple):
    """A neighbour as our own HELLO names it."""

    link: int
    kind: int
    address: int
    quality: bytes


def compose(
    mentions: Iterable[Mention], interval: float, willingness: int, kind: int, room: int
) -> Iterator[bytes]:
    """Bodies of HELLOs of at most ``room`` bytes each: one, unless there are very many neighbours."""
    groups: dict[int, list[wire.Neighbour]] = {code: [] for code in _CODES}
    for mention in mentions:
        groups[mention.link | mention.kind << 2].append(wire.Neighbour(mention.address, mention.quality))
    htime = validity.encode(interval)
    part: list[wire.Group] = []
    left = room - _HELLO_HEADER
    for code, neighbours in groups.items():
        rest = neighbours
        while rest:
            each = 4 + len(rest[0].quality)
            fitting = (left - _GROUP_HEADER) // each
            if fitting < 1:
                yield wire.encode_hello(wire.Hello(htime, willingness, tuple(part)), kind)
                part, left = [], room - _HELLO_HEADER
                continue
            taken, rest = rest[:fitting], rest[fitting:]
            part.append(wire.Group(code, tuple(taken)))
            left -= _GROUP_HEADER + each * len(taken)
    yield wire.encode_hello(wire.Hello(htime, willingness, tuple(part)), kind)
