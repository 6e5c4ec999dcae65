"""Finds the replica that a stream flows through at this moment, from what agents say about their routes."""

from collections.abc import Mapping, Sequence

from node_agent.apps.dataflow.metrics import SHARE
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.telemetry.metrics import Sample

Shares = Mapping[str, Mapping[str, float]]
"""By replica, the share of its output that goes to each downstream replica."""


def shares_in(app: str, plan: DeploymentPlan, samples: Mapping[str, Sequence[Sample]]) -> Shares:
    """Reads the shares from the samples of each node, which are believed about the node's own replicas."""
    own = {replica.id: replica.node for replica in plan.replicas}
    found: dict[str, dict[str, float]] = {}
    for node, reported in samples.items():
        for sample in reported:
            if sample.name == SHARE and sample.app == app and own.get(sample.labels[0]) == node:
                found.setdefault(sample.labels[0], {})[sample.labels[2]] = sample.value
    return found


def replica_in_use(plan: DeploymentPlan, operator: str, shares: Shares) -> str | None:
    """Returns the replica of ``operator`` that most of the streams flows through, from the sources on; None
    if they do not get there.
    """
    query = plan.query
    flows = {replica.id: 1.0 for source in query.sources() for replica in plan.of(source)}
    for name in query.topological():
        for replica in plan.of(name):
            flow = flows.get(replica.id, 0.0)
            for to, share in shares.get(replica.id, {}).items():
                flows[to] = flows.get(to, 0.0) + flow * share
    used = [replica.id for replica in plan.of(operator) if flows.get(replica.id, 0.0) > 0]
    return max(used, key=lambda replica: flows[replica], default=None)
