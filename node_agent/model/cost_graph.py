"""The network as a node sees it, G_net: directed links with additive costs, and their source."""

from msgspec import Struct


class CostGraph(Struct, frozen=True):
    """``costs[u][v]``: the cost of sending from node u to its neighbour v; no entry means no link.

    ``relays``: nodes pass on what is for others, so that costs of links add up to those of paths.
    """

    costs: dict[str, dict[str, float]]
    metric: str
    source: str
    taken_ns: int
    relays: bool = True
