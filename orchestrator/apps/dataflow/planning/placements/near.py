"""Placement ``near``: replicas on the nodes of sources and sinks, or else on nodes that stay between them."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.arrangement import Choose, Placed, Slot
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, one_by_one
from orchestrator.apps.dataflow.spec.placement import NearPlacement
from orchestrator.planning.distances import Distance

_ROUNDING = 1e-9


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
    sources = {
        name: [s for s in query.sources() if name in query.reachable_from([s])] for name in query.names()
    }
    sinks = {name: [s for s in query.sinks() if s in query.reachable_from([name])] for name in query.names()}

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        hosted: dict[str, list[str]] = {}
        for (name, _), node in placed.items():
            hosted.setdefault(node, []).append(name)
        free = [node for node in order if node not in hosted]
        if operator not in inner:
            return free[0] if free else None

        def fits(node: str) -> bool:
            others = hosted.get(node, ())
            if operator in others or "" in others:  # "": not for this operator
                return False
            return sum(needs[name] for name in (*others, operator)) <= cores[node] + _ROUNDING

        above = [placed[source, 0] for source in sources[operator]]
        below = [placed[sink, 0] for sink in sinks[operator]]

        def way(node: str) -> float:
            return fmean(distance(end, node) for end in above) + fmean(distance(node, end) for end in below)

        def choices() -> Iterator[str]:
            before = [placed[name, index] for name in query.upstream(operator) if (name, index) in placed]
            yield from filter(fits, [*below, *before] if index == 1 else [*before, *below])
            by_way = sorted(free, key=way)  # among equals the order decides
            yield from filter(fits, by_way)
            yield from by_way
            yield from filter(fits, (node for node in order if node in hosted))

        return next(choices(), None)

    return choose


POLICY = PlacementPolicy(
    one_by_one(lambda site: near(site.query, site.order, site.needs, site.cores, site.mean_distance)),
    "replicas on the nodes of sources and sinks, or else on nodes that stay between them",
    NearPlacement,
)
