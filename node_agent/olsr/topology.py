"""The topology set: the edges that TCs announce (RFC 3626, section 9, with olsrd's link qualities).

An originator's TC is fresh if its sequence number and ANSN are a little ahead of the known ones. Others are
strays; several strays in a row, each ahead of the one before, show that the originator has restarted.

A full set evicts the least credible originators: not neighbours that announce themselves, not those heard for
long, and among the others first those reported by the neighbour that reports most.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from msgspec import Struct

from node_agent.manet.membership import ANYBODY, Manet
from node_agent.olsr import quality, validity, wire
from node_agent.olsr.eviction import ESTABLISHED, least_credible
from node_agent.olsr.quality import BROKEN, Metric

MAX_ORIGINATORS = 2048
MAX_EDGES = 65536
MAX_PER_ORIGINATOR = 2048
WHOLE = 0xFF  # a border: nothing comes before, or after

_NEVER = 1 << 62
_SEQNO_WINDOW = 1024
_ANSN_WINDOW = 256
_STRAYS = 2  # in a row that show a restart
_LATE_STRAYS = 4  # the same where reordered messages look alike


class TcContent(NamedTuple):
    """The content of one TC."""

    ansn: int
    whole: bool  # it names all edges of its originator
    low: int  # it covers the addresses from here …
    high: int  # … up to, not including, here; if it covers none, edges of an older ANSN are void
    edges: Mapping[int, "Edge"]
    costs: Mapping[int, int]  # see usable


class Edge(Struct, frozen=True, gc=False):
    quality: int
    neighbour_quality: int
    cost: int
    ansn: int


class Origin:
    """The known neighbours of one originator. ``by``: the neighbour that reported it first."""

    __slots__ = (
        "ansn",
        "body",
        "by",
        "edges",
        "hops",
        "ignored",
        "seqno",
        "stray",
        "strays",
        "times",
        "until",
    )

    def __init__(self, message: wire.Message, ansn: int, by: int) -> None:
        self.by = by
        self.times = 0  # how often it was heard
        self.ansn = ansn
        self.seqno = (message.seqno - 1) & 0xFFFF
        self.until = 0
        self.hops = 0
        self.body = b""
        self.edges: Mapping[int, Edge] = {}
        self.stray = self.strays = self.ignored = 0

    def admits(self, seqno: int, ansn: int) -> bool:
        """Says whether a TC with these numbers is valid."""
        ahead = (seqno - self.seqno) & 0xFFFF
        grown = (ansn - self.ansn) & 0xFFFF
        late = ahead == 0 or ahead >= 0x10000 - _SEQNO_WINDOW
        if (0 < ahead <= _SEQNO_WINDOW and grown <= _ANSN_WINDOW) or (late and grown == 0):
            self.strays = self.ignored = 0
            if not late:
                self.seqno = seqno
            self.ansn = ansn
            return True
        follows = self.strays and 0 < (seqno - self.stray) & 0xFFFF <= _SEQNO_WINDOW
        self.strays = self.strays + 1 if follows else 1
        self.stray = seqno
        if self.strays < (_LATE_STRAYS if late else _STRAYS):
            self.ignored += 1
            return False
        self.seqno, self.ansn = seqno, ansn
        self.strays = self.ignored = 0
        return True


class Topology:
    def __init__(self, metric: Metric, manet: Manet = ANYBODY, longest_ns: int = _NEVER) -> None:
        """``longest_ns``: the limit of a TC's validity."""
        self.origins: dict[int, Origin] = {}
        self.costs: dict[int, Mapping[int, int]] = {}  # of each originator's usable edges
        self.changes = 0
        self.next_expiry = _NEVER
        self.evicted = 0
        self.changed_edges: list[tuple[Mapping[int, int], Mapping[int, int]]] = []
        """Where edges came or went: an originator's costs before and after. The owner clears the list."""
        self._read = reader(metric, manet)
        self._manet = manet
        self._longest_ns = longest_ns
        self._edges = 0

    def receive_tc(self, message: wire.Message, now: int, by: int = 0) -> None:
        """Processes a TC that the neighbour ``by`` sent or forwarded. Raises Malformed."""
        origin = self.origins.get(message.originator)
        if origin is not None and origin.body == message.body:
            # The ANSN is part of the body, so an equal body means the same generation of the same edges.
            if origin.admits(message.seqno, origin.ansn):
                self._renew(origin, message, now)
            return
        content = self._read(message.kind, message.body)
        if origin is None:
            if len(self.origins) >= MAX_ORIGINATORS:
                self._make_room(message.originator)
            origin = self.origins[message.originator] = Origin(message, content.ansn, by)
            self.costs[message.originator] = {}
            self.changes += 1
        if origin.admits(message.seqno, content.ansn):
            origin.body = message.body
            self._replace(message.originator, origin, content)
            self._renew(origin, message, now)

    def expire(self, now: int) -> None:
        for address in [key for key, origin in self.origins.items() if origin.until <= now]:
            self._forget(address)
        self.next_expiry = min((origin.until for origin in self.origins.values()), default=_NEVER)

    def _make_room(self, but: int) -> None:
        shares = Counter(origin.by for origin in self.origins.values())

        def credibility(address: int) -> tuple[bool, bool, int, int]:
            origin = self.origins[address]
            return origin.by == address, origin.times >= ESTABLISHED, -shares[origin.by], origin.times

        for address in least_credible((each for each in self.origins if each != but), credibility):
            self._forget(address)
            self.evicted += 1

    def _forget(self, address: int) -> None:
        self._edges -= len(self.origins.pop(address).edges)
        del self.costs[address]
        self.changes += 1

    def _renew(self, origin: Origin, message: wire.Message, now: int) -> None:
        origin.times += 1
        valid_ns = validity.NANOSECONDS[message.vtime]
        origin.until = now + (valid_ns if valid_ns < self._longest_ns else self._longest_ns)
        origin.hops = message.hops
        if origin.until < self.next_expiry:
            self.next_expiry = origin.until

    def _replace(self, address: int, origin: Origin, content: TcContent) -> None:
        edges, costs = content.edges, content.costs
        if not content.whole:
            kept = {a: edge for a, edge in origin.edges.items() if not _is_void(a, edge, content)}
            edges = kept | dict(edges)
            costs = usable({a: edge.cost for a, edge in edges.items()}, self._manet)
        if len(edges) > MAX_PER_ORIGINATOR:
            self.evicted += 1
            origin.body = b""
            return
        more = len(edges) - len(origin.edges)
        while self._edges + more > MAX_EDGES:
            self._make_room(address)
        self._edges += more
        origin.edges = edges
        before = self.costs[address]
        if costs != before:
            if costs.keys() != before.keys():
                self.changed_edges.append((before, costs))
            self.costs[address] = costs
            self.changes += 1


@cache
def reader(metric: Metric, manet: Manet) -> Callable[[int, bytes], TcContent]:
    """Returns a function that reads the kind and the body of a TC, and raises Malformed.

    It remembers, because in virtual time all receivers are in this process.
    """
    return lru_cache(maxsize=512)(lambda kind, body: _read(kind, body, metric, manet))


def _read(kind: int, body: bytes, metric: Metric, manet: Manet) -> TcContent:
    tc = wire.decode_tc(wire.Message(kind, 0, 0, 0, 0, 0, body))
    edges: dict[int, Edge] = {}
    for address, packed in tc.neighbours:
        measured = metric.unpack(packed)
        edges[address] = Edge(*measured, quality.cost(*measured), tc.ansn)
    costs = usable({address: edge.cost for address, edge in edges.items()}, manet)
    low, high = span(tc)
    whole = (tc.lower_border, tc.upper_border) == (WHOLE, WHOLE)
    return TcContent(tc.ansn, whole, low, high, edges, costs)


def usable(costs: Mapping[int, int], manet: Manet) -> dict[int, int]:
    """Removes broken edges and addresses outside the network: others can claim to be next to anything."""
    known = manet.known
    return {
        address: cost
        for address, cost in costs.items()
        if cost < BROKEN and (address in known or manet.belongs(address))
    }


def _is_void(address: int, edge: Edge, content: TcContent) -> bool:
    if content.low == content.high:
        return edge.ansn != content.ansn
    return content.low <= address < content.high


def span(tc: wire.Tc) -> tuple[int, int]:
    """Returns the addresses that a part of a TC covers: from the first up to, not including, the second.

    A TC without borders is RFC 3626's and covers none.
    """
    if not tc.lower_border and not tc.upper_border:
        return 0, 0
    low, high = 0, 1 << 32
    if tc.neighbours:
        if 0 < tc.lower_border <= 32:
            low = _cut(tc.neighbours[0].address, tc.lower_border)
        if 0 < tc.upper_border <= 32:
            high = _cut(tc.neighbours[-1].address, tc.upper_border)
    return low, high


def border(last: int, first: int) -> int:
    """Returns the border between two parts of a TC: 1 + the highest bit
    in which their adjoining addresses differ."""
    return (last ^ first).bit_length()


def _cut(address: int, code: int) -> int:
    bit = code - 1
    return (address >> bit | 1) << bit
