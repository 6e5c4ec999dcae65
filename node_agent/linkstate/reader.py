"""What every source of link state reports, by address, before nodes are named and metrics converted.

A link that the source calls broken is not in a reading: no number stands for "no link".
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple, Protocol

from node_agent.linkstate.base import LinkStateUnavailable


class LinkStateError(LinkStateUnavailable):
    """Reading the source failed; the message says how, in one sentence."""


class Refused(LinkStateError):
    """Nothing listens there, or the connection broke."""


class TimedOut(LinkStateError):
    """There was no whole answer in time."""


class Rejected(LinkStateError):
    """The source answers, but not this question."""


class Garbage(LinkStateError):
    """The answer is cut off, endless, or not what such a source sends."""


class NotOffered(LinkStateError):
    """The source does not have the metric that is asked for."""


class Edge(NamedTuple):
    """One directed link. ``cost`` is in the reading's metric. None: the source does not report it.

    ``delivery``: the probability that a packet and its acknowledgement both arrive. ``latency``: one way, in
    seconds. ``hops``: how many links it stands for.
    """

    cost: float
    delivery: float | None = None
    latency: float | None = None
    hops: int | None = 1


Edges = dict[str, dict[str, Edge]]


class Reading(NamedTuple):
    """``edges[u][v]`` by address; ``aliases``: by other addresses of a node, the one in ``edges``.

    ``own_only``: the source knows the costs from this node to others, and no others.
    """

    edges: Edges
    metric: str
    source: str
    aliases: Mapping[str, str] = MappingProxyType({})
    own_only: bool = False


class Reader(Protocol):
    async def read(self) -> Reading:
        """Returns what the source reports now, within a second. Raises LinkStateError."""
        ...


@lru_cache(maxsize=4096)  # few addresses, each on many links
def ipv4(text: str) -> str:
    """Returns the address in its usual form. Raises Garbage."""
    try:
        return str(IPv4Address(text))
    except AddressValueError as error:
        raise Garbage(f"{text[:40]!r} is no IPv4 address") from error


def is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def number(value: float | str, what: str) -> float:
    """Returns a finite number of at least 0. Raises Garbage."""
    try:
        result = float(value)
    except (ValueError, OverflowError):
        shown = repr(value[:40]) if isinstance(value, str) else "too large"
        raise Garbage(f"{what} is no number: {shown}") from None
    if not (isfinite(result) and result >= 0):
        raise Garbage(f"{what} cannot be {result}")
    return result
