"""What every source of network costs offers to the router: a routing daemon, a probe, or ground truth."""

from typing import Protocol

from node_agent.model.cost_graph import CostGraph

LINK_STATE_TIMEOUT = 5.0
"""Seconds that whoever asks for a cost graph waits for it."""


class LinkStateUnavailable(Exception):
    """No cost graph can be had at the moment; asking again later may help."""


class LinkState(Protocol):
    async def cost_graph(self) -> CostGraph:
        """The network as this node sees it now. Raises LinkStateUnavailable."""
        ...
