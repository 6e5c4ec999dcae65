"""The deployment plan G_QDP: which replica of which operator runs on which node (the paper, III-A)."""

from msgspec import Struct

from node_agent.apps.dataflow.model.query import Query


class Replica(Struct, frozen=True):
    operator: str
    index: int
    node: str

    @property
    def id(self) -> str:
        return f"{self.operator}/{self.index}"


def operator_of(replica: str) -> str:
    """Returns the operator that a replica's id names."""
    return replica.rpartition("/")[0]


class DeploymentPlan(Struct, frozen=True):
    query: Query
    replicas: tuple[Replica, ...]

    def of(self, operator: str) -> tuple[Replica, ...]:
        return tuple(r for r in self.replicas if r.operator == operator)

    def on(self, node: str) -> tuple[Replica, ...]:
        return tuple(r for r in self.replicas if r.node == node)

    def replica(self, replica_id: str) -> Replica:
        for replica in self.replicas:
            if replica.id == replica_id:
                return replica
        raise KeyError(replica_id)
