"""Placement ``colocate``: replicas of consecutive operators share nodes, as far as their CPUs allow."""

from collections.abc import Mapping, Sequence

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.arrangement import Choose, Placed, Slot, fits_in, hosted
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, one_by_one
from orchestrator.apps.dataflow.spec.placement import ColocatePlacement


def colocate(
    query: Query, order: Sequence[str], needs: Mapping[str, float], cores: Mapping[str, int]
) -> Choose:
    """Puts replicas of consecutive operators on one node, as long as their needs together fit into its CPU.

    A replica joins its predecessor of the same index. Otherwise it takes a free node with enough CPU, or any
    free node. If no node is free, it joins a node with room. Replicas of one operator never share a node.
    """
    inner = frozenset(query.inner())

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        here = hosted(placed)
        fresh = [node for node in order if node not in here]
        if operator not in inner:
            return fresh[0] if fresh else None

        def can_join(node: str) -> bool:
            others = here[node]
            if operator in others or not inner.issuperset(others):
                return False
            return fits_in(needs, (*others, operator), cores[node])

        before = [placed[name, index] for name in query.upstream(operator) if (name, index) in placed]
        able = (node for node in fresh if fits_in(needs, [operator], cores[node]))
        choices = (
            *(node for node in before if can_join(node)),
            *able,
            *fresh[:1],
            *(node for node in order if node in here and can_join(node)),
        )
        return choices[0] if choices else None

    return choose


POLICY = PlacementPolicy(
    one_by_one(lambda site: colocate(site.query, site.order, site.needs, site.cores)),
    "replicas of consecutive operators on the same nodes, as far as their CPUs allow",
    ColocatePlacement,
    on_any_nodes=True,
)
