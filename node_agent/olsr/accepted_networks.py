"""Which networks behind other nodes may get routes here (HNA): those that this node's owner has named."""

from collections.abc import Iterable
from ipaddress import IPv4Network


class AcceptedNetworks:
    """A prefix stands for itself and what is inside it; 0.0.0.0/0 for the default route and nothing else."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        """Raises ValueError."""
        networks = map(IPv4Network, prefixes)
        self._prefixes = tuple((int(each.network_address), int(each.netmask)) for each in networks)

    def accepts(self, network: int, netmask: int) -> bool:
        return any(
            (netmask == 0 if prefix_mask == 0 else netmask >= prefix_mask) and network & prefix_mask == prefix
            for prefix, prefix_mask in self._prefixes
        )
