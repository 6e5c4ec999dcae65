"""The link state of an agent, as its applications see it."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from node_agent.linkstate.base import LINK_STATE_TIMEOUT, LinkState, LinkStateUnavailable
from node_agent.linkstate.node_costs import with_node_costs
from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph

Routed = Callable[[Iterable[str]], Collection[str]]
"""Returns those of the named nodes that this one has a route to."""


class AgentCosts:
    """Adds the costs of nodes to the link state of ``node``, and remembers whether it ever reported costs.

    ``routed``: where packets go by the kernel's routes; None where the link state itself forwards them.
    """

    def __init__(
        self,
        node: str,
        link_state: LinkState,
        node_costs: Mapping[str, float],
        routed: Routed | None = None,
    ) -> None:
        self.known = False
        self.node = node
        self._link_state = link_state
        self._node_costs = node_costs
        self._routed = routed

    async def cost_graph(self) -> CostGraph:
        graph = await self._link_state.cost_graph()
        self.known = True
        return with_node_costs(graph, self._node_costs)

    async def ways(self) -> dict[str, float]:
        """Returns the other nodes that there is a route to now, and what it costs to reach them; none if the
        link state does not answer.

        What the link state knows is not always a route yet: a daemon may know links and not have looked for
        ways over them.
        """
        try:
            async with asyncio.timeout(LINK_STATE_TIMEOUT):
                graph = await self.cost_graph()
        except (LinkStateUnavailable, TimeoutError):
            return {}
        known = {node: cost for node, cost in distances(graph, self.node).items() if node != self.node}
        if self._routed is None:
            return known
        routed = self._routed(known)
        return {node: cost for node, cost in known.items() if node in routed}
