"""Decides which addresses belong to the ad-hoc network: who is believed, and where routes may lead.

A daemon that believed every message would let any radio neighbour redirect the rest of the machine's traffic:
to the control network, or to everywhere.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from msgspec import Struct

Reason = Literal["", "outside_prefix", "not_member"]

_MOST_KNOWN = 4096
_LINK_LOCAL = IPv4Network("169.254.0.0/16")


class ManetConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``networks`` contain the nodes' addresses; if empty, the daemon takes those of its interfaces.
    ``members``: every node's address, if known; then other addresses are refused, and each node must send
    from its own. ``key``: the group's key, with which all nodes seal their messages; without it nothing is
    authenticated. It must never be printed."""

    networks: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    key: bytes = b""

    def __post_init__(self) -> None:
        manet_of(self.networks, self.members)

    def __repr__(self) -> str:
        return f"ManetConfig(networks={self.networks!r}, members={self.members!r})"


class Manet:
    """Addresses are numbers. It is compared by identity, which makes it a quick cache key.

    ``known`` holds addresses that were found to belong; frequent callers look there first.
    """

    def __init__(self, networks: Iterable[IPv4Network], members: Iterable[IPv4Address] = ()) -> None:
        """Without a network every address that a node can have belongs. Raises ValueError."""
        self.networks = tuple(networks)
        self.members = frozenset(int(member) for member in members)
        self.known: set[int] = set(self.members)
        self._prefixes = tuple((int(each.network_address), int(each.netmask)) for each in self.networks)
        # No node has a network's own address or its broadcast address.
        self._nobodys = frozenset(
            int(address)
            for each in self.networks
            if each.prefixlen <= 30
            for address in (each.network_address, each.broadcast_address)
        )
        self._link_local = any(each.subnet_of(_LINK_LOCAL) for each in self.networks)
        for member in self.members:
            if not self._is_inside(member):
                raise ValueError(f"the member {IPv4Address(member)} is not in the network {self.described()}")

    def described(self) -> str:
        return ", ".join(map(str, self.networks)) or "of any address"

    def belongs(self, address: int) -> bool:
        """Can a node of the network have this address?"""
        return address in self.known or not self.refusal(address)

    def refusal(self, address: int) -> Reason:
        """Returns why messages of the address are refused; empty if they are accepted."""
        if address in self.known:
            return ""
        if not self._is_inside(address):
            return "outside_prefix"
        if self.members:
            return "not_member"
        if len(self.known) < _MOST_KNOWN:
            self.known.add(address)
        return ""

    def _is_inside(self, address: int) -> bool:
        if not is_host(address) or address in self._nobodys:
            return False
        if address >> 16 == 0xA9FE and not self._link_local:
            return False
        return not self._prefixes or any(address & mask == network for network, mask in self._prefixes)


def is_host(address: int) -> bool:
    """Can a node have this address? Not in 0/8 or 127/8 (loopback), not multicast or above."""
    return 0 < address >> 24 < 224 and address >> 24 != 127


@lru_cache(maxsize=64)
def manet_of(networks: tuple[str, ...], members: tuple[str, ...] = ()) -> Manet:
    """Returns the same object for the same arguments: in virtual time
    all nodes share it. Raises ValueError."""
    return Manet(map(IPv4Network, networks), map(IPv4Address, members))


ANYBODY = manet_of(())
