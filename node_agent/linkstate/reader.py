"""What every source of link state tells, by address, before names and the metric asked for are put on it.

A link that the source calls broken is not in a reading at all: no number ever stands for "no link".
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple, Protocol

from node_agent.linkstate.base import LinkStateUnavailable


class LinkStateError(LinkStateUnavailable):
    """Reading the source has failed; the message says in one sentence how."""


class Refused(LinkStateError):
    """Nobody listens there, or the connection broke."""


class TimedOut(LinkStateError):
    """No whole answer within the time given."""


class Rejected(LinkStateError):
    """The source answers, but not this question."""


class Garbage(LinkStateError):
    """The answer is cut off, endless, or not what such a source says."""


class NotOffered(LinkStateError):
    """The source does not know the metric that is asked for."""


class Edge(NamedTuple):
    """One directed link. ``cost`` is in the reading's metric; None: the source does not say.

    ``delivery`` is the probability that a packet and its acknowledgement both arrive, ``latency`` one way in
    seconds, ``hops`` the links that it stands for.
    """

    cost: float
    delivery: float | None = None
    latency: float | None = None
    hops: int | None = 1


Edges = dict[str, dict[str, Edge]]


class Reading(NamedTuple):
    """``edges[u][v]`` by address; ``aliases`` leads from a node's other addresses to the one in ``edges``.

    ``own_only``: the source knows the costs from this node to others, and nothing about theirs.
    """

    edges: Edges
    metric: str
    source: str
    aliases: Mapping[str, str] = MappingProxyType({})
    own_only: bool = False


class Reader(Protocol):
    async def read(self) -> Reading:
        """What the source says now, within a second. Raises LinkStateError."""
        ...


@lru_cache(maxsize=4096)  # a network has few addresses, and each is on many links
def ipv4(text: str) -> str:
    """The address in its usual form. Raises Garbage."""
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
    """A finite number that is not negative. Raises Garbage."""
    try:
        result = float(value)
    except (ValueError, OverflowError):
        shown = repr(value[:40]) if isinstance(value, str) else "too large"
        raise Garbage(f"{what} is no number: {shown}") from None
    if not (isfinite(result) and result >= 0):
        raise Garbage(f"{what} cannot be {result}")
    return result
