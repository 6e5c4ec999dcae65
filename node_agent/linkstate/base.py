"""What every source of network costs offers the router: a routing daemon, a prober, or the owner."""

from typing import Protocol

from node_agent.model.cost_graph import CostGraph

LINK_STATE_TIMEOUT = 5.0
"""Seconds that a caller waits for a cost graph."""


class LinkStateUnavailable(Exception):
    """There is no cost graph at the moment; asking again later may help."""


class LinkState(Protocol):
    async def cost_graph(self) -> CostGraph:
        """Returns the network as this node sees it now. Raises LinkStateUnavailable."""
        ...
