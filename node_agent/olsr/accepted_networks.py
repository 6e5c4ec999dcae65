"""Decides which networks behind other nodes (HNA) may get routes here: those that this node's owner named."""

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
