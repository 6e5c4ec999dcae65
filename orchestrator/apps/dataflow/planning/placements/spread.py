"""Placement ``spread``: replicas of an operator far from each other, but not out of the way."""

from collections.abc import Sequence
from math import inf

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.arrangement import Choose, Placed, Slot, ends_of, way_through
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, one_by_one
from orchestrator.apps.dataflow.spec.placement import SpreadPlacement
from orchestrator.planning.distances import Distance

DETOUR = 2 / 3
"""More than a half: a step away from all others lengthens the way twice, and must not pay off."""


def spread(query: Query, order: Sequence[str], distance: Distance) -> Choose:
    """Puts replicas of an operator far from each other, but not out of the way; one operator per node.

    The first is where random placement puts it. Each further one maximises its distance to the nearest
    replica before it, minus ``DETOUR`` times the length of the way through it from the sources to the sinks.
    """

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        taken = frozenset(placed.values())
        free = [node for node in order if node not in taken]
        siblings = [placed[operator, i] for i in range(index) if (operator, i) in placed]
        if not siblings or not free:
            return free[0] if free else None
        above, below = ends_of(query, placed, operator)

        def merit(node: str) -> float:
            way = way_through(node, above, below, distance)
            if way == inf:
                return -inf  # no tuple would ever pass through it
            return min(distance(node, sibling) for sibling in siblings) - DETOUR * way

        return max(free, key=merit)  # among equals the first: the order breaks ties

    return choose


POLICY = PlacementPolicy(
    one_by_one(lambda site: spread(site.query, site.order, site.distance)),
    "replicas of an operator far from each other, but not out of the way",
    SpreadPlacement,
    on_any_nodes=True,
)
