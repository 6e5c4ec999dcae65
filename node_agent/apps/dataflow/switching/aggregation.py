"""Multi-input cost aggregation (the paper, III-B): how the inputs of one operator choose the same replica of
it.

Upstream replicas report to each replica of an operator with several inputs what it costs them to reach it.
The replica adds up the inputs and reports the sum to all of them. They compare replicas by this sum, which is
the same for all of them, and never by their own cost.

The paper leaves open what counts if an input is itself replicated and only one of its replicas sends at a
time. Here an input counts with its cheapest replica: the one that its own upstreams prefer, all else being
equal, whichever replica is in use. If no replica of an input has a path, the sum is infinite: half of a join
is worth nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.routing_messages import CostReport


def aggregate(inputs: Iterable[Sequence[float]]) -> float:
    """Returns the sum over the inputs of an operator, each at the cost of its cheapest replica."""
    return sum((min(costs, default=inf) for costs in inputs), 0.0)


def aggregate_of(plan: DeploymentPlan, own: Replica, reports: Mapping[str, CostReport]) -> float:
    """The same from the reports of upstream replicas, by their ids. A replica without report has no path."""

    def reported(replica: Replica) -> float:
        report = reports.get(replica.id)
        return inf if report is None or report.cost is None else report.cost

    return aggregate([[reported(r) for r in plan.of(name)] for name in plan.query.upstream(own.operator)])


def in_common_use(plan: DeploymentPlan, operator: str, used: Iterable[str | None]) -> str | None:
    """Returns the replica of ``operator`` that most upstream replicas use; the plan's order breaks ties."""
    votes = Counter(to for to in used if to is not None)
    replicas = [r.id for r in plan.of(operator) if votes[r.id]]
    return max(replicas, key=lambda replica: votes[replica], default=None)
