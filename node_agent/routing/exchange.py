"""Exchange mode (seed 000, IV-A): a replica measures its direct downstreams and learns the rest from them.

Where the network layer shows no link state, each replica knows only what it costs to reach its direct
downstream replicas. What lies beyond these it is told by them, and tells its upstreams in turn. The paper
forwards the whole sub-graph; as G_QDP has no cycles, the cost from a replica to the sinks says as much, in a
few bytes. With operators of several inputs, costs go downstream as well (``aggregation``).

The state machine does no input or output: its owner measures, carries the messages, and asks what is due. All
memory is bounded by the replica's neighbours in the plan; whoever else writes is ignored.
"""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from node_agent.model.decision import Rule
from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.routing_messages import CostReport, CostUpdate, Message
from node_agent.routing.aggregation import aggregate_of, in_common_use
from node_agent.routing.outlook import Outlook, cost_to_sinks, is_shared, situation

PERIOD_NS = 1_000_000_000
EXPIRY_NS = 4_000_000_000


class Addressed(NamedTuple):
    to: str
    message: Message


class _Heard(NamedTuple):
    message: Message
    at_ns: int


class Exchange:
    """``expiry_ns``: what was measured or heard longer ago says nothing any more."""

    def __init__(
        self,
        plan: DeploymentPlan,
        own: Replica,
        policy: str = "shortest_path",
        boot: int = 1,
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
        self._shared = [name for name in self._downstreams if is_shared(query, name, policy)]
        self._links: dict[str, float] = {}
        self._metric = self._source = ""
        self._measured_ns: int | None = None
        self._heard: dict[str, _Heard] = {}
        self._using: Mapping[str, str | None] = {}
        self._queue = 0
        self._number = 0
        self._due_ns: int | None = None
        self._told: tuple[float, ...] | None = None

    def measured(self, costs: Mapping[str, float], metric: str, source: str, now_ns: int) -> None:
        """What it costs to reach the direct downstream replicas; who is not listed cannot be reached."""
        self._links = {to: cost for to, cost in costs.items() if to in self._direct and cost < inf}
        self._metric, self._source = metric, source
        self._measured_ns = now_ns

    def uses(self, using: Mapping[str, str | None], queue: int) -> None:
        """Which replica of each downstream operator is sent to, and how many tuples wait here."""
        self._using = dict(using)
        self._queue = queue

    def received(self, message: Message, now_ns: int) -> None:
        """``message.sender`` must be who the link says it is. What has been overtaken is ignored."""
        expected = self._direct if isinstance(message, CostUpdate) else self._upstream
        if message.sender not in expected:
            return
        last = self._heard.get(message.sender)
        if last is not None and (message.boot, message.number) <= (last.message.boot, last.message.number):
            return
        self._heard[message.sender] = _Heard(message, now_ns)

    def updates_due(self, now_ns: int) -> list[Addressed]:
        """Every period, and at once when a way to the sinks, or an input, was lost or found."""
        told = self._tells(now_ns)
        ways = tuple(cost < inf for cost in told)
        changed = self._told is not None and ways != tuple(cost < inf for cost in self._told)
        if self._due_ns is not None and now_ns < self._due_ns and not changed:
            return []
        self._told = told
        self._due_ns = now_ns + self._period_ns
        self._number += 1
        return [*self._updates(told, now_ns), *self._reports(now_ns)]

    def outlook(self, now_ns: int) -> Outlook:
        updates = {u.sender: u for u in self._updates_heard(now_ns)}
        using = {
            name: in_common_use(
                self._plan, name, [updates[r.id].using for r in self._plan.of(name) if r.id in updates]
            )
            for name in self._shared
        }
        return Outlook(
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
        """The replica of the own operator that most upstreams send to: where parts of windows belong."""
        reports = self._reports_heard(now_ns).values()
        return in_common_use(self._plan, self._own.operator, [report.using for report in reports])

    def _tells(self, now_ns: int) -> tuple[float, ...]:
        """The own cost to the sinks, and the aggregate over the inputs if there are several."""
        outlook = self.outlook(now_ns)
        choices = [situation(self._plan, self._own, d, outlook, self._rule) for d in self._downstreams]
        if not self._is_shared:
            return (cost_to_sinks(choices),)
        return (cost_to_sinks(choices), aggregate_of(self._plan, self._own, self._reports_heard(now_ns)))

    def _updates(self, told: tuple[float, ...], now_ns: int) -> list[Addressed]:
        to_sinks, *aggregates = (cost if cost < inf else None for cost in told)
        update = CostUpdate(
            self._own.id,
            self._boot,
            self._number,
            to_sinks,
            self._queue,
            aggregates[0] if aggregates else None,
            self.sibling_in_use(now_ns) if self._is_shared else None,
        )
        return [Addressed(to, update) for to in self._upstream]

    def _reports(self, now_ns: int) -> list[Addressed]:
        links = self.outlook(now_ns).links
        return [
            Addressed(
                r.id,
                CostReport(self._own.id, self._boot, self._number, links.get(r.id), self._using.get(name)),
            )
            for name in self._shared
            for r in self._plan.of(name)
        ]

    def _updates_heard(self, now_ns: int) -> list[CostUpdate]:
        return [
            heard.message
            for heard in (self._heard[to] for to in self._direct if to in self._heard)
            if isinstance(heard.message, CostUpdate) and self._fresh(heard.at_ns, now_ns)
        ]

    def _reports_heard(self, now_ns: int) -> dict[str, CostReport]:
        return {
            sender: heard.message
            for sender, heard in self._heard.items()
            if isinstance(heard.message, CostReport) and self._fresh(heard.at_ns, now_ns)
        }

    def _fresh(self, at_ns: int, now_ns: int) -> bool:
        return now_ns - at_ns <= self._expiry_ns
