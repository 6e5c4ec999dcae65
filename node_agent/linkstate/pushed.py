"""Costs that the agent's owner pushes to it, if no routing daemon runs on the node.

The graph itself says where it comes from (``source``), and records show it.
"""

import asyncio

from node_agent.linkstate.source import LinkStateReader
from node_agent.model.cost_graph import CostGraph


class PushedLinkState:
    def __init__(self) -> None:
        self._graph: CostGraph | None = None
        self._pushed = asyncio.Event()

    def push(self, graph: CostGraph) -> None:
        self._graph = graph
        self._pushed.set()

    async def cost_graph(self) -> CostGraph:
        """Returns the last graph. Waits for the first one: callers have their own time limit."""
        while self._graph is None:
            await self._pushed.wait()
        return self._graph


READER = LinkStateReader("costs that the agent's owner sends it", (), lambda source: PushedLinkState())
