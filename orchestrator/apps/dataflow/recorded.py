"""The deployment plan of a dataflow, out of what a manifest records of it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from node_agent.apps.dataflow.model.plan import DeploymentPlan


def deployment_in(record: Mapping[str, Any]) -> DeploymentPlan | None:
    """None if there is none, its query is no graph, or it has a replica of an operator that is not there; or
    one moves that has not exactly one replica."""
    try:
        plan = msgspec.convert(record["plan"], DeploymentPlan)
        operators = plan.query.origins()
    except (msgspec.ValidationError, KeyError, TypeError, ValueError):
        return None
    known = all(replica.operator in operators for replica in plan.replicas)
    return plan if known and all(len(plan.of(each.operator)) == 1 for each in plan.moving) else None
