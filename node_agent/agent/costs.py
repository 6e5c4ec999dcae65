"""The link state of an agent, as its applications see it."""

import asyncio
from collections.abc import Mapping

from node_agent.linkstate.base import LINK_STATE_TIMEOUT, LinkState, LinkStateUnavailable
from node_agent.linkstate.node_costs import with_node_costs
from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph


class AgentCosts:
    """Adds the costs of nodes to the link state of ``node``, and remembers whether it ever reported costs."""

    def __init__(self, node: str, link_state: LinkState, node_costs: Mapping[str, float]) -> None:
        self.known = False
        self.node = node
        self._link_state = link_state
        self._node_costs = node_costs

    async def cost_graph(self) -> CostGraph:
        graph = await self._link_state.cost_graph()
        self.known = True
        return with_node_costs(graph, self._node_costs)

    async def reaches(self) -> tuple[str, ...]:
        """Returns the other nodes that the link state has a route to now; none if it does not answer."""
        try:
            async with asyncio.timeout(LINK_STATE_TIMEOUT):
                graph = await self.cost_graph()
        except (LinkStateUnavailable, TimeoutError):
            return ()
        return tuple(node for node in distances(graph, self.node) if node != self.node)
