"""Multi-input cost aggregation (seed 000, III-B): how inputs of one operator come to choose the same replica.

Upstream replicas tell each replica of an operator with several inputs what it costs them to reach it. The
replica adds up the inputs and tells the sum to all of them; they compare replicas by this sum, which is the
same for everyone, and never by their own cost.

The paper leaves open what counts where an input is itself replicated, and only one of its replicas sends at a
time: here an input counts with the cheapest of its replicas. That is the one its own upstreams prefer, all
else being equal, and it does not change with who happens to be in use. An input of which no replica has a
path makes the sum infinite: half of a join is worth nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.routing_messages import CostReport


def aggregate(inputs: Iterable[Sequence[float]]) -> float:
    """The sum over the inputs of an operator, each at the cost of its cheapest replica."""
    return sum((min(costs, default=inf) for costs in inputs), 0.0)


def aggregate_of(plan: DeploymentPlan, own: Replica, reports: Mapping[str, CostReport]) -> float:
    """The same from what the upstream replicas report, by their ids; who does not report has no path."""

    def reported(replica: Replica) -> float:
        report = reports.get(replica.id)
        return inf if report is None or report.cost is None else report.cost

    return aggregate([[reported(r) for r in plan.of(name)] for name in plan.query.upstream(own.operator)])


def in_common_use(plan: DeploymentPlan, operator: str, used: Iterable[str | None]) -> str | None:
    """The replica of ``operator`` that most upstream replicas use; the plan's order breaks ties."""
    votes = Counter(to for to in used if to is not None)
    replicas = [r.id for r in plan.of(operator) if votes[r.id]]
    return max(replicas, key=lambda replica: votes[replica], default=None)
