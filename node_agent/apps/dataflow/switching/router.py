"""One node's router: reads costs from the network layer, and sets the routes of the node's replicas by them.

``decision`` decides what to choose, and is pure. The router decides when, with which costs, and sends the
exchange's messages.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from node_agent.apps.base import Surroundings
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.routing_messages import Notice
from node_agent.apps.dataflow.switching.chooser import Chooser
from node_agent.apps.dataflow.switching.decision import View, decide
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.dataflow.switching.exchanges import Exchanges
from node_agent.apps.dataflow.switching.known_costs import KnownCosts, costs_from_link_state
from node_agent.apps.dataflow.switching.route import Route
from node_agent.linkstate.base import LINK_STATE_TIMEOUT, LinkStateUnavailable
from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph

FIRST_LOOKS = 0.5
LEAST_PAUSE = 0.01


class Steered(Protocol):
    """A replica on this node, as the router sees it."""

    @property
    def replica(self) -> Replica: ...

    @property
    def route(self) -> Route: ...

    def waiting(self) -> Mapping[str, int]:
        """Returns by downstream operator how many tuples wait there."""
        ...

    def silent(self) -> Sequence[str]:
        """Returns the downstream replicas that do not answer."""
        ...

    def steer(self, route: Route) -> None: ...

    def assemble_at(self, sibling: str | None) -> None:
        """``sibling`` assembles units of several tuples; None: this replica, or it is not known. Called
        repeatedly.
        """
        ...


class Router:
    """``exchanges``: None if replicas need not exchange anything. ``queue`` returns how many tuples wait at a
    replica, on their way in or out.
    """

    def __init__(
        self,
        config: DataflowConfig,
        around: Surroundings,
        replicas: Sequence[Steered],
        exchanges: Exchanges | None,
        queue: Callable[[str], int],
    ) -> None:
        self._config = config
        self._node = around.node
        self._port = around.port
        self._link_state = around.link_state
        self._record = around.record
        self._replicas = replicas
        self._exchanges = exchanges
        self._queue = queue
        self._chooser = Chooser(config.switching.rule.policy, around.failures)
        self._graph: CostGraph | None = None
        self._reconsider = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether the network layer has reported costs to this node."""
        return self._graph is not None

    def reconsider(self) -> None:
        """Decides now, because a replica stopped answering, without waiting for the next period or new
        costs.
        """
        self._reconsider.set()

    def found_again(self) -> None:
        """A replica answers again: decides now if a route leads to one that does not. Otherwise it waits for
        the next period, as with all that is better than what works.
        """
        for steered in self._replicas:
            silent = steered.silent()
            if any(to in silent for hop in steered.route.hops.values() if hop for to in hop.replicas()):
                self.reconsider()
                return

    async def run(self) -> None:
        """Adapts routes every period until cancelled. Returns at once if there is nothing to route."""
        period = self._config.switching.period
        # A random offset: agents that start together should not always decide together.
        pause = period * self._port.random.random()
        while True:
            if (graph := await self._read_graph()) is not None:
                if self._exchanges is not None:
                    self._measure(self._exchanges, graph)
                self._adapt_to(graph)
            if self._graph is None:  # the routing daemon is still starting
                await self._port.sleep(min(period, FIRST_LOOKS))
                continue
            if not self._replicas:
                return
            await self._wait(pause)
            pause = period

    async def exchange(self) -> None:
        """Sends due messages to other replicas until cancelled, however rarely routes are adapted."""
        if (exchanges := self._exchanges) is None or not self._replicas:
            return
        measures = self._config.switching.mode is Mode.EXCHANGE
        await self._port.sleep(self._port.random.random())
        while True:
            if measures and (graph := await self._read_graph()) is not None:
                self._measure(exchanges, graph)
            self._send_due(exchanges)
            self._adopt_new_routes(exchanges)
            pause = (exchanges.due_ns - exchanges.now_ns()) / 1e9
            await self._port.sleep(max(LEAST_PAUSE, pause))

    def receive(self, notice: Notice) -> None:
        """Takes a message of a replica on another node. An old one costs little: anybody can repeat
        messages.
        """
        if self._exchanges is not None and self._exchanges.receive(notice):
            self._assemble_units(self._exchanges)
            self._adopt_new_routes(self._exchanges)

    async def _wait(self, seconds: float) -> None:
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

    async def _read_graph(self) -> CostGraph | None:
        """Returns the costs; None if there are no new ones. Present routes may still be good, and better than
        none.
        """
        try:
            async with asyncio.timeout(LINK_STATE_TIMEOUT):
                self._graph = await self._link_state.cost_graph()
        except (LinkStateUnavailable, TimeoutError):
            return None
        return self._graph

    def _adapt_to(self, graph: CostGraph) -> None:
        plan, rule = self._config.plan, self._config.switching.rule
        for steered in self._replicas:
            own = steered.replica
            costs = self._known_costs(graph, own)
            view = View(
                plan, own, costs, rule, steered.waiting(), self._port.now_ns(), tuple(steered.silent())
            )
            route, events = decide(view, steered.route, self._chooser)
            for event in events:
                self._record(event)
            steered.steer(route)
        if self._exchanges is not None:
            self._send_due(self._exchanges)

    def _known_costs(self, graph: CostGraph, own: Replica) -> KnownCosts:
        plan, switching, exchanges = self._config.plan, self._config.switching, self._exchanges
        if exchanges is None:
            return costs_from_link_state(graph, plan, own, switching.rule.policy)
        exchange, now_ns = exchanges.of(own.id), exchanges.now_ns()
        if switching.mode is Mode.EXCHANGE:
            return replace(exchange.known_costs(now_ns), taken_ns=graph.taken_ns)
        return exchange.completed(costs_from_link_state(graph, plan, own, switching.rule.policy), now_ns)

    def _measure(self, exchanges: Exchanges, graph: CostGraph) -> None:
        """Sets the costs of reaching the direct downstream replicas, and no others, whatever else is
        known.
        """
        plan, now_ns = self._config.plan, exchanges.now_ns()
        reached = distances(graph, self._node)
        for steered in self._replicas:
            own = steered.replica
            direct = [r for name in plan.query.downstream(own.operator) for r in plan.of(name)]
            costs = {r.id: reached[r.node] for r in direct if r.node in reached}
            exchanges.of(own.id).measured(costs, graph.metric, f"{graph.source}, exchanged", now_ns)

    def _send_due(self, exchanges: Exchanges) -> None:
        for steered in self._replicas:
            own, route = steered.replica.id, steered.route
            exchanges.of(own).uses({name: route.to(name) for name in route.hops}, self._queue(own))
        exchanges.send_due()
        self._assemble_units(exchanges)

    def _adopt_new_routes(self, exchanges: Exchanges) -> None:
        """Gives replicas without a route one at once, without waiting for the next period."""
        if self._graph is None or self._config.switching.mode is not Mode.EXCHANGE:
            return
        plan, rule, now_ns = self._config.plan, self._config.switching.rule, exchanges.now_ns()
        for steered in self._replicas:
            missing = [name for name, hop in steered.route.hops.items() if hop is None]
            if not missing:
                continue
            own = steered.replica
            view = View(plan, own, exchanges.of(own.id).known_costs(now_ns), rule, steered.waiting())
            if any(self._chooser.choose(view.situation(name, None)).choice.hop for name in missing):
                self._adapt_to(self._graph)
                return

    def _assemble_units(self, exchanges: Exchanges) -> None:
        """Lets parts of units go where the other parts go."""
        now_ns = exchanges.now_ns()
        for steered in self._replicas:
            own = steered.replica.id
            in_use = exchanges.of(own).sibling_in_use(now_ns)
            steered.assemble_at(in_use if in_use != own else None)
