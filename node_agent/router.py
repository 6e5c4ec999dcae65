"""One node's router: asks the network layer what ways cost, and steers the node's replicas by it.

What to choose is decided by ``routing``, which is pure; here is when, on what knowledge, and who is told.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from node_agent.agent_config import AgentConfig
from node_agent.linkstate.base import LinkState, LinkStateUnavailable
from node_agent.linkstate.node_costs import with_node_costs
from node_agent.model.cost_graph import CostGraph
from node_agent.model.plan import Replica
from node_agent.model.telemetry import Event
from node_agent.ports import Port
from node_agent.routing.decision import View, decide
from node_agent.routing.outlook import link_state_outlook
from node_agent.routing.route import Route
from node_agent.routing.shortest_path import distances

LINK_STATE_TIMEOUT = 5.0
FIRST_LOOKS = 0.5


class Steered(Protocol):
    """A replica on this node, as the router sees it."""

    @property
    def replica(self) -> Replica: ...

    @property
    def route(self) -> Route: ...

    def waiting(self) -> Mapping[str, int]:
        """Tuples that wait there, by downstream operator."""
        ...

    def silent(self) -> Sequence[str]:
        """The downstream replicas that do not answer."""
        ...

    def steer(self, route: Route) -> None: ...


class Router:
    def __init__(
        self,
        config: AgentConfig,
        port: Port,
        link_state: LinkState,
        replicas: Sequence[Steered],
        record: Callable[[Event], None],
    ) -> None:
        self._config = config
        self._port = port
        self._link_state = link_state
        self._replicas = replicas
        self._record = record
        self._graph: CostGraph | None = None
        self._reconsider = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether the network layer has given this node its costs."""
        return self._graph is not None

    async def reaches(self) -> tuple[str, ...]:
        """The other nodes that the network layer knows a way to; asked now: routes may be adapted rarely."""
        # Without a first graph the router itself is asking, and may have to wait for it.
        if self._graph is None or await self._look() is None:
            return ()
        own = self._config.node
        return tuple(node for node in distances(self._graph, own) if node != own)

    def reconsider(self) -> None:
        """A replica does not answer any more: do not wait for the next time, nor for news of the network."""
        self._reconsider.set()

    async def run(self) -> None:
        """Adapt routes every period until cancelled; returns early if there is nothing here to route."""
        period = self._config.switching.period
        # Agents that start together should not all decide together for ever after.
        pause = period * self._port.random.random()
        while True:
            if (graph := await self._look()) is not None:
                self._adapt_to(graph)
            if self._graph is None:  # the routing daemon is only starting
                await self._port.sleep(min(period, FIRST_LOOKS))
                continue
            if not self._replicas:
                return
            await self._rest(pause)
            pause = period

    async def _rest(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                async with asyncio.timeout_at(until):
                    await self._reconsider.wait()
            except TimeoutError:
                return
            self._reconsider.clear()
            if self._graph is not None:
                self._adapt_to(self._graph)

    async def _look(self) -> CostGraph | None:
        """None: nothing new can be told. The routes there are may still be good, and better than none."""
        try:
            async with asyncio.timeout(LINK_STATE_TIMEOUT):
                graph = await self._link_state.cost_graph()
        except (LinkStateUnavailable, TimeoutError):
            return None
        self._graph = with_node_costs(graph, self._config.node_costs)
        return self._graph

    def _adapt_to(self, graph: CostGraph) -> None:
        plan, rule = self._config.plan, self._config.switching.rule
        for steered in self._replicas:
            own = steered.replica
            outlook = link_state_outlook(graph, plan, own, rule.policy)
            view = View(
                plan, own, outlook, rule, steered.waiting(), self._port.now_ns(), tuple(steered.silent())
            )
            route, events = decide(view, steered.route)
            for event in events:
                self._record(event)
            steered.steer(route)
