"""Exchange mode (the paper, IV-A): a replica measures its direct downstreams and learns the rest from them.

Without link state of the network layer, each replica knows only what it costs to reach its direct downstream
replicas. These report the costs of what lies beyond them, and the replica reports to its own upstreams. The
paper forwards the whole sub-graph; as G_QDP has no cycles, the cost from a replica to the sinks says as much
in a few bytes. With operators of several inputs, costs also go downstream (``aggregation``).

With link state, costs need no exchange. But the network layer knows neither queues nor which replica the
inputs of an operator have in common: these are also exchanged in that mode, if a decision depends on them.

The state machine does no I/O: its owner measures, carries the messages, and asks what is due. Memory is
bounded by the replica's neighbours in the plan; messages of others are ignored.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.routing_messages import CostReport, CostUpdate, Message, Notice
from node_agent.apps.dataflow.switching.aggregation import aggregate_of, in_common_use
from node_agent.apps.dataflow.switching.known_costs import KnownCosts, cost_to_sinks, is_shared, situation
from node_agent.apps.dataflow.switching.policy import policy_of

PERIOD_NS = 1_000_000_000
EXPIRY_NS = 4_000_000_000


class Mode(StrEnum):
    """Where replicas learn the costs of whole paths: from the network layer, or from each other."""

    LINK_STATE = "link_state"
    EXCHANGE = "exchange"


def is_needed(query: Query, policy: str, mode: Mode) -> bool:
    """Whether replicas must send each other something that a decision depends on."""
    if mode is Mode.EXCHANGE or policy_of(policy).queues:
        return True
    return policy_of(policy).adapts and any(is_shared(query, name, policy) for name in query.names())


class _Received(NamedTuple):
    message: Message
    at_ns: int


class _State(NamedTuple):
    """What others are sent at once when it changes; of costs, only whether there is a path at all."""

    to_sinks: float
    aggregate: float
    sibling: str | None
    using: Mapping[str, str | None]

    def is_news_after(self, before: "_State") -> bool:
        paths, paths_before = ((t.to_sinks < inf, t.aggregate < inf) for t in (self, before))
        return (paths, self.sibling, self.using) != (paths_before, before.sibling, before.using)


class Exchange:
    """The exchange of one replica. ``boot`` counts the starts of its agent. ``expiry_ns``: how long a
    measurement or message counts.
    """

    def __init__(
        self,
        plan: DeploymentPlan,
        own: Replica,
        policy: str = "shortest_path",
        boot: int = 1,
        mode: Mode = Mode.EXCHANGE,
        period_ns: int = PERIOD_NS,
        expiry_ns: int = EXPIRY_NS,
    ) -> None:
        self._plan = plan
        self._own = own
        self._rule = Rule(policy)
        self._boot = boot
        self._period_ns = period_ns
        self._expiry_ns = expiry_ns
        query = plan.query
        self._downstreams = query.downstream(own.operator)
        self._direct = [r.id for name in self._downstreams for r in plan.of(name)]
        self._upstream = [r.id for name in query.upstream(own.operator) for r in plan.of(name)]
        self._is_shared = is_shared(query, own.operator, policy)
        self._sends_updates = mode is Mode.EXCHANGE or policy_of(policy).queues or self._is_shared
        self._shared = [name for name in self._downstreams if is_shared(query, name, policy)]
        self._links: dict[str, float] = {}
        self._metric = self._source = ""
        self._measured_ns: int | None = None
        self._received: dict[str, _Received] = {}
        self._using: Mapping[str, str | None] = {}
        self._queue = 0
        self._number = 0
        self._due_ns: int | None = None
        self._last_sent: _State | None = None

    def measured(self, costs: Mapping[str, float], metric: str, source: str, now_ns: int) -> None:
        """Sets the costs of reaching the direct downstream replicas; a replica not listed cannot be
        reached.
        """
        self._links = {to: cost for to, cost in costs.items() if to in self._direct and cost < inf}
        self._metric, self._source = metric, source
        self._measured_ns = now_ns

    def uses(self, using: Mapping[str, str | None], queue: int) -> None:
        """Sets which replica of each downstream operator is in use, and how many tuples wait here."""
        self._using = dict(using)
        self._queue = queue

    def received(self, message: Message, now_ns: int) -> bool:
        """Takes a message of a holder of the run's key. Returns whether it is new.

        Ignores old messages, repeated ones, and those of replicas that are no neighbours.
        """
        expected = self._direct if isinstance(message, CostUpdate) else self._upstream
        if message.sender not in expected:
            return False
        last = self._received.get(message.sender)
        if last is not None and (message.boot, message.number) <= (last.message.boot, last.message.number):
            return False
        self._received[message.sender] = _Received(message, now_ns)
        return True

    @property
    def due_ns(self) -> int:
        """When messages are due even if nothing happens until then."""
        return self._due_ns or 0

    def updates_due(self, now_ns: int) -> list[Notice]:
        """Returns the messages that are due: every period, and at once when a path to the sinks or an input
        is lost or found, or another replica comes into use.
        """
        state = self._state(now_ns)
        news = self._last_sent is not None and state.is_news_after(self._last_sent)
        if self._due_ns is not None and now_ns < self._due_ns and not news:
            return []
        self._last_sent = state
        self._due_ns = now_ns + self._period_ns
        self._number += 1
        return [*self._updates(state), *self._reports(now_ns)]

    def completed(self, costs: KnownCosts, now_ns: int) -> KnownCosts:
        """Returns the costs of the link state, with the queues and choices that only replicas know."""
        received = self.known_costs(now_ns)
        return replace(costs, queues=received.queues, using=received.using)

    def known_costs(self, now_ns: int) -> KnownCosts:
        """Returns what was measured and received, as far as it has not expired."""
        updates = {u.sender: u for u in self._fresh_updates(now_ns)}
        using = {
            name: in_common_use(
                self._plan, name, [updates[r.id].using for r in self._plan.of(name) if r.id in updates]
            )
            for name in self._shared
        }
        return KnownCosts(
            links=self._links
            if self._measured_ns is not None and self._fresh(self._measured_ns, now_ns)
            else {},
            beyond={to: u.to_sinks for to, u in updates.items() if u.to_sinks is not None},
            metric=self._metric,
            source=self._source,
            taken_ns=self._measured_ns or 0,
            aggregates={to: u.aggregate for to, u in updates.items() if u.aggregate is not None},
            queues={to: u.queue for to, u in updates.items()},
            using={name: to for name, to in using.items() if to is not None},
        )

    def sibling_in_use(self, now_ns: int) -> str | None:
        """Returns the replica of the own operator that most upstreams send to: parts of windows belong
        there.
        """
        reports = self._fresh_reports(now_ns).values()
        return in_common_use(self._plan, self._own.operator, [report.using for report in reports])

    def _state(self, now_ns: int) -> _State:
        costs = self.known_costs(now_ns)
        choices = [situation(self._plan, self._own, d, costs, self._rule) for d in self._downstreams]
        reached = aggregate_of(self._plan, self._own, self._fresh_reports(now_ns)) if self._is_shared else inf
        using = {name: self._using.get(name) for name in self._shared}
        return _State(cost_to_sinks(choices), reached, self.sibling_in_use(now_ns), using)

    def _updates(self, state: _State) -> list[Notice]:
        if not self._sends_updates:
            return []
        to_sinks, reached = (cost if cost < inf else None for cost in (state.to_sinks, state.aggregate))
        update = CostUpdate(
            self._own.id, self._boot, self._number, to_sinks, self._queue, reached, state.sibling
        )
        return [Notice(to, update) for to in self._upstream]

    def _reports(self, now_ns: int) -> list[Notice]:
        links = self.known_costs(now_ns).links
        return [
            Notice(
                r.id,
                CostReport(self._own.id, self._boot, self._number, links.get(r.id), self._using.get(name)),
            )
            for name in self._shared
            for r in self._plan.of(name)
        ]

    def _fresh_updates(self, now_ns: int) -> list[CostUpdate]:
        return [
            received.message
            for received in (self._received[to] for to in self._direct if to in self._received)
            if isinstance(received.message, CostUpdate) and self._fresh(received.at_ns, now_ns)
        ]

    def _fresh_reports(self, now_ns: int) -> dict[str, CostReport]:
        return {
            sender: received.message
            for sender, received in self._received.items()
            if isinstance(received.message, CostReport) and self._fresh(received.at_ns, now_ns)
        }

    def _fresh(self, at_ns: int, now_ns: int) -> bool:
        return now_ns - at_ns <= self._expiry_ns
