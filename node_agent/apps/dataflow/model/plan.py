"""The deployment plan G_QDP: which replica of which operator runs on which node (the paper, III-A)."""

from typing import Literal

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


class Migration(Struct, frozen=True):
    """``at``: seconds since the measurement began. ``give_up``: seconds after which it ends if unfinished."""

    at: float
    target: str
    method: Literal["live", "stop_and_copy"] = "live"
    give_up: float = 120.0


class Moving(Struct, frozen=True):
    """An operator, with one replica, that moves. ``hosts``: the nodes where it may be, first the one where it
    begins. ``coordinator``: the node that orders its migrations.
    """

    operator: str
    hosts: tuple[str, ...]
    coordinator: str
    migrations: tuple[Migration, ...]


class DeploymentPlan(Struct, frozen=True, omit_defaults=True):
    query: Query
    replicas: tuple[Replica, ...]
    moving: tuple[Moving, ...] = ()

    def of(self, operator: str) -> tuple[Replica, ...]:
        return tuple(r for r in self.replicas if r.operator == operator)

    def on(self, node: str) -> tuple[Replica, ...]:
        return tuple(r for r in self.replicas if r.node == node)

    def nodes(self) -> tuple[str, ...]:
        """Returns the nodes that have a replica, or may come to have one."""
        hosts = (host for each in self.moving for host in each.hosts)
        return tuple(dict.fromkeys([*(replica.node for replica in self.replicas), *hosts]))

    def deployed_on(self, node: str) -> tuple[str, ...]:
        """Returns the operators whose files a node needs: those it has at first, or orders to move."""
        own = (replica.operator for replica in self.replicas if replica.node == node)
        ordered = (each.operator for each in self.moving if node == each.coordinator)
        return tuple(dict.fromkeys([*own, *ordered]))

    def operators_on(self, node: str) -> tuple[str, ...]:
        """Returns the same with those that it may come to have: their state comes over the network."""
        moving = (each.operator for each in self.moving if node in each.hosts)
        return tuple(dict.fromkeys([*self.deployed_on(node), *moving]))

    def moves(self, operator: str) -> bool:
        return any(each.operator == operator for each in self.moving)

    def routed(self, operator: str) -> tuple[str, ...]:
        """Returns the downstream operators of which a replica is chosen. One that moves has a stream of its
        own, which leads to it wherever it is.
        """
        return tuple(name for name in self.query.downstream(operator) if not self.moves(name))

    def replica(self, replica_id: str) -> Replica:
        for replica in self.replicas:
            if replica.id == replica_id:
                return replica
        raise KeyError(replica_id)
