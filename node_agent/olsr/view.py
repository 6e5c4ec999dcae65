"""A daemon's knowledge at one moment, frozen: for the query interfaces and for cost graphs.

Addresses are integers, times milliseconds left, costs in the metric (ETX or hops; ``None`` = broken), link
qualities fractions (1.0 if hops are counted).
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

LinkStatus = Literal["SYMMETRIC", "ASYMMETRIC", "LOST"]


class LinkView(NamedTuple):
    interface: str
    local: int
    remote: int
    neighbour: int  # main address
    status: LinkStatus
    previous_status: LinkStatus | Literal["UNSPECIFIED"]
    validity_ms: int
    symmetry_ms: int
    asymmetry_ms: int
    vtime_ms: int
    hello_interval_ms: int  # as the neighbour announced it
    loss_ms: int  # until a HELLO counts as lost
    quality: float
    neighbour_quality: float
    cost: float | None


class TwoHop(NamedTuple):
    address: int
    cost: float | None  # of the second hop, as the neighbour says
    validity_ms: int


class NeighbourView(NamedTuple):
    address: int  # main address
    symmetric: bool
    willingness: int
    is_mpr: bool  # relays for this node
    is_mpr_selector: bool  # this node relays for it
    links: int
    two_hop: tuple[TwoHop, ...]


class EdgeView(NamedTuple):
    """One edge of the topology. The node's own edges have ``own``, and 0 for values that come from a TC."""

    last_hop: int
    destination: int
    quality: float
    neighbour_quality: float
    cost: float | None
    path_cost: float | None  # to last_hop; None = no route there
    path_hops: int
    validity_ms: int
    ansn: int
    edge_ansn: int
    seqno: int
    message_hops: int
    ignored: int  # TCs of this originator ignored as stale since the last good one
    own: bool


class RouteView(NamedTuple):
    destination: int
    prefix: int  # 32, or shorter for a network announced by HNA
    gateway: int
    hops: int
    cost: float
    interface: str


class MidView(NamedTuple):
    main: int
    aliases: tuple[int, ...]
    validity_ms: int


class HnaView(NamedTuple):
    gateway: int
    network: int
    prefix: int
    validity_ms: int


class InterfaceView(NamedTuple):
    name: str
    address: int
    mtu: int  # room in a packet: MTU minus IP and UDP headers
    packet_seqno: int
    ttl_index: int
    next_hello_ms: int
    next_tc_ms: int
    next_mid_ms: int | None  # None: nothing to announce
    next_hna_ms: int | None


class View(NamedTuple):
    taken_ns: int
    started_ns: int
    main_address: int
    ansn: int
    links: tuple[LinkView, ...]
    neighbours: tuple[NeighbourView, ...]
    topology: tuple[EdgeView, ...]
    routes: tuple[RouteView, ...]
    mid: tuple[MidView, ...]
    hna: tuple[HnaView, ...]
    interfaces: tuple[InterfaceView, ...]


class Costs(NamedTuple):
    """What links cost: the part of a view that is read most often."""

    own: tuple[int, ...]  # addresses of the interfaces, the main address first
    edges: list[tuple[int, int, float, float]]
    """Last hop, destination, cost, and the probability that a packet and its acknowledgement both arrive; in
    the order of their ends. Broken edges are left out."""
    aliases: Mapping[int, int]  # main addresses of other addresses
