"""Placement ``near``: replicas on the nodes of sources and sinks, or else on nodes that stay between them."""

from collections.abc import Iterator, Mapping, Sequence

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.arrangement import (
    Choose,
    Placed,
    Slot,
    ends_of,
    fits_in,
    hosted,
    way_through,
)
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, one_by_one
from orchestrator.apps.dataflow.spec.placement import NearPlacement
from orchestrator.planning.distances import Distance


def near(
    query: Query,
    order: Sequence[str],
    needs: Mapping[str, float],
    cores: Mapping[str, int],
    distance: Distance,
) -> Choose:
    """Keeps the stream off the radio where it can, as far as CPUs allow.

    Replica 0 joins the operator before it, so a chain begins on its source's node. Replica 1 joins the sink.
    Further replicas, and those that do not fit, join the replica before them with the same index, or take the
    free node through which the way from sources to sinks is shortest by ``distance``. Replicas of one
    operator never share a node.
    """
    inner = frozenset(query.inner())

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        here = hosted(placed)
        free = [node for node in order if node not in here]
        if operator not in inner:
            return free[0] if free else None

        def fits(node: str) -> bool:
            others = here.get(node, ())
            if operator in others or "" in others:  # "": not for this operator
                return False
            return fits_in(needs, (*others, operator), cores[node])

        above, below = ends_of(query, placed, operator)

        def way(node: str) -> float:
            return way_through(node, above, below, distance)

        def choices() -> Iterator[str]:
            before = [placed[name, index] for name in query.upstream(operator) if (name, index) in placed]
            yield from filter(fits, [*below, *before] if index == 1 else [*before, *below])
            by_way = sorted(free, key=way)  # among equals the order decides
            yield from filter(fits, by_way)
            yield from by_way
            yield from filter(fits, (node for node in order if node in here))

        return next(choices(), None)

    return choose


POLICY = PlacementPolicy(
    one_by_one(lambda site: near(site.query, site.order, site.needs, site.cores, site.mean_distance)),
    "replicas on the nodes of sources and sinks, or else on nodes that stay between them",
    NearPlacement,
    on_any_nodes=True,
)
