"""Reads which networks others announce (HNA), and decides which of them may get routes here: those that this
node's owner named.
"""

from collections.abc import Iterable
from ipaddress import IPv4Network


class AcceptedNetworks:
    """A prefix stands for itself and all networks inside it; 0.0.0.0/0 for the default route alone."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        """Raises ValueError if a prefix is no network."""
        networks = map(IPv4Network, prefixes)
        self._prefixes = tuple((int(each.network_address), int(each.netmask)) for each in networks)

    def accepts(self, network: int, netmask: int) -> bool:
        return any(
            (netmask == 0 if prefix_mask == 0 else netmask >= prefix_mask) and network & prefix_mask == prefix
            for prefix, prefix_mask in self._prefixes
        )


def announced_network(address: int, netmask: int) -> tuple[int, int] | None:
    """Returns the network that an entry of an HNA announces, by address and netmask; None if it is none.

    An olsrd with SmartGateway writes flags and its speeds up and down into the last three bytes of the
    netmask of 0.0.0.0/0. Such an entry announces the default route, or, by speeds of 0, its end.
    """
    hosts = netmask ^ 0xFFFF_FFFF
    if not hosts & hosts + 1:
        return address & netmask, netmask
    is_gateway = address == 0 and netmask <= 0x00FF_FFFF and netmask & 0xFFFF
    return (0, 0) if is_gateway else None
