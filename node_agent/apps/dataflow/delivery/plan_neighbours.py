"""A replica's neighbours in the deployment plan, as far as delivery needs them."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.units import Each


class PlanNeighbours(Struct, frozen=True):
    """``upstreams``: by input, its replicas. ``downstreams``: by operator, whether it needs several items for
    a result. A replica without downstreams is a sink.
    """

    replica: str
    upstreams: Mapping[str, tuple[str, ...]]
    downstreams: Mapping[str, bool]

    @property
    def operator(self) -> str:
        return self.replica.rpartition("/")[0]

    @property
    def role(self) -> Literal["source", "operator", "sink"]:
        if not self.upstreams:
            return "source"
        return "operator" if self.downstreams else "sink"


def plan_neighbours_of(replica: Replica, plan: DeploymentPlan) -> PlanNeighbours:
    """Returns the neighbours of ``replica`` in ``plan``."""
    query = plan.query
    return PlanNeighbours(
        replica.id,
        {name: tuple(other.id for other in plan.of(name)) for name in query.upstream(replica.operator)},
        {
            name: not isinstance(query.operator(name).takes, Each)
            for name in query.downstream(replica.operator)
        },
    )
