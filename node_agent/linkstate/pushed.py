"""Costs that the agent's owner tells it, where no routing daemon runs on the node.

The graph says itself where it comes from (``source``), so that the record shows it.
"""

import asyncio

from node_agent.model.cost_graph import CostGraph


class ToldLinkState:
    def __init__(self) -> None:
        self._graph: CostGraph | None = None
        self._told = asyncio.Event()

    def tell(self, graph: CostGraph) -> None:
        self._graph = graph
        self._told.set()

    async def cost_graph(self) -> CostGraph:
        """Waits for the first one: whoever asks has a time limit of its own."""
        while self._graph is None:
            await self._told.wait()
        return self._graph
