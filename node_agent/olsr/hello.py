"""Reads a HELLO into a value, and composes a node's own HELLO."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from msgspec import Struct

from node_agent.manet.membership import ANYBODY, Manet
from node_agent.olsr import quality, validity, wire
from node_agent.olsr.quality import Metric

UNSPECIFIED, ASYMMETRIC, SYMMETRIC, LOST = 0, 1, 2, 3  # link types
NOT_NEIGHBOUR, SYMMETRIC_NEIGHBOUR, MPR_NEIGHBOUR = 0, 1, 2  # neighbour types

_LINK_ORDER = (UNSPECIFIED, LOST, ASYMMETRIC, SYMMETRIC)
_CODES = tuple(link | kind << 2 for kind in (0, 1, 2) for link in _LINK_ORDER)
_HELLO_HEADER, _GROUP_HEADER = 4, 4


class Standing(Struct, frozen=True, gc=False):
    """How a HELLO mentions one address."""

    link: int | None  # None: not as the other end of a link
    quality: int  # how well the neighbour receives it
    relays: bool  # for the neighbour


NOT_MENTIONED = Standing(None, 0, False)


class HelloContent(NamedTuple):
    hello_ns: int  # the neighbour's HELLO interval, as it says
    willingness: int
    standings: Mapping[int, Standing]  # of all addresses it mentions
    listed: Mapping[int, int]  # its neighbours that belong to the network, with costs
    mentioned: frozenset[int]  # these, and addresses that are no longer, or not yet, its neighbours


@cache
def reader(metric: Metric, manet: Manet = ANYBODY) -> Callable[[int, bytes], HelloContent]:
    """Returns a function that reads the kind and the body of a HELLO, and raises Malformed.

    It remembers, because most HELLOs repeat the one before, and in virtual time all receivers are in this
    process.
    """
    return lru_cache(maxsize=512)(lambda kind, body: _read(kind, body, metric, manet))


def _read(kind: int, body: bytes, metric: Metric, manet: Manet) -> HelloContent:
    hello = wire.decode_hello(wire.Message(kind, 0, 0, 0, 0, 0, body))
    standings: dict[int, Standing] = {}
    listed: dict[int, int] = {}
    gone: list[int] = []
    for code, neighbours in hello.groups:
        link_type, neighbour_type = code & 3, code >> 2
        relays = neighbour_type == MPR_NEIGHBOUR
        for address, packed in neighbours:
            measured = metric.unpack(packed)
            before = standings.get(address, NOT_MENTIONED)
            link, received = before.link, before.quality
            if link_type != UNSPECIFIED:
                link, received = link_type, measured[0]
            standings[address] = Standing(link, received, relays or before.relays)
            if address not in manet.known and not manet.belongs(address):
                continue
            if neighbour_type in (SYMMETRIC_NEIGHBOUR, MPR_NEIGHBOUR):
                cost = quality.cost(*measured)
                listed[address] = min(cost, listed.get(address, cost))
            elif neighbour_type == NOT_NEIGHBOUR:
                gone.append(address)
    return HelloContent(
        hello_ns=validity.NANOSECONDS[hello.htime],
        willingness=min(hello.willingness, 7),
        standings=standings,
        listed=listed,
        mentioned=frozenset((*listed, *gone)),
    )


Mention = tuple[int, bytes]
"""A neighbour in our own HELLO: the code of its group, and its encoded entry."""


def compose(mentions: Iterable[Mention], interval: float, willingness: int, room: int) -> Iterator[bytes]:
    """Yields bodies of HELLOs of at most ``room`` bytes: one, unless there are very many neighbours."""
    groups: dict[int, list[bytes]] = {}
    for code, entry in mentions:
        groups.setdefault(code, []).append(entry)
    htime = validity.encode(interval)
    part: list[tuple[int, bytes]] = []
    left = room - _HELLO_HEADER
    for code in _CODES:
        rest = groups.get(code, [])
        while rest:
            each = len(rest[0])
            fitting = (left - _GROUP_HEADER) // each
            if fitting < 1:
                yield wire.join_hello(htime, willingness, part)
                part, left = [], room - _HELLO_HEADER
                continue
            taken, rest = rest[:fitting], rest[fitting:]
            part.append((code, b"".join(taken)))
            left -= _GROUP_HEADER + each * len(taken)
    yield wire.join_hello(htime, willingness, part)
