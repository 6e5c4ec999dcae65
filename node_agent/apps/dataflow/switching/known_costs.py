"""What a replica knows about the costs of paths to the sinks, and the choice that it has to make.

The costs come from the network's link state (here) or from the replicas downstream (``exchange``).
"""

from collections.abc import Mapping
from math import inf
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.dataflow.model.decision import MOST_CANDIDATES, Candidate, Rule, Situation
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.switching.aggregation import aggregate
from node_agent.apps.dataflow.switching.policy import policy_of
from node_agent.linkstate.shortest_path import Links, Tree, reversed_links, towards, tree
from node_agent.model.cost_graph import CostGraph

MOST_COMPARED = 8
"""If there are more candidates, only the paths to the cheapest of them are compared for interference."""


class KnownCosts(Struct, frozen=True):
    """Costs by id of the direct downstream replicas; an absent one cannot be reached or is not known.

    ``links``: cost of reaching it. ``beyond``: from it to the sinks. ``aggregates``: cost of reaching it,
    summed over the inputs of its operator, if it has several. ``queues``: tuples that wait there. ``using``:
    by operator with several inputs, the replica that these have in common.
    """

    links: Mapping[str, float]
    beyond: Mapping[str, float]
    metric: str
    source: str
    taken_ns: int
    aggregates: Mapping[str, float] = {}
    queues: Mapping[str, int] = {}
    using: Mapping[str, str] = {}
    apart: Mapping[str, tuple[str, ...]] = {}


def is_whole(query: Query, operator: str) -> bool:
    """Whether the operator needs several tuples for a result, which must then meet at one of its replicas."""
    return not isinstance(query.operator(operator).takes, Each)


def is_shared(query: Query, operator: str, policy: str) -> bool:
    """Whether several senders must choose the same replica of the operator: its inputs, if it has several.

    The replicas of a single input choose for themselves, as in the paper, while only one of them is in use at
    a time; under policies that use several at once they must agree too.
    """
    several = len(query.upstream(operator)) > 1 or policy_of(policy).several
    return several and is_whole(query, operator)


def costs_from_link_state(
    graph: CostGraph, plan: DeploymentPlan, own: Replica, policy: str = "shortest_path"
) -> KnownCosts:
    """Computes the costs from the whole network's, by dynamic programming from the sinks backwards.

    A replica with several downstream operators feeds all of them: its cost to the sinks is the sum of its
    best choices, and infinite if it cannot reach one of them. In front of an operator with several inputs the
    choice is by aggregate, and costs a replica its own path to the one chosen. An operator that moves costs
    nothing, wherever it is: its stream leads from one replica only.
    """
    query = plan.query
    backwards = reversed_links(graph)
    below = query.reachable_from([own.operator]) - {own.operator}
    beyond: dict[str, float] = {}
    aggregates: dict[str, float] = {}
    ways: dict[str, dict[str, float]] = {}
    for name in reversed(query.topological()):
        if name not in below:
            continue
        replicas = plan.of(name)
        for replica in replicas:
            branches = [ways[downstream].get(replica.node, inf) for downstream in plan.routed(name)]
            beyond[replica.id] = sum(branches, 0.0)
        ends: dict[str, float] = {}
        asked = not below.isdisjoint(query.upstream(name))  # what it costs to reach these
        if is_shared(query, name, policy):
            reached = {replica.id: _reaching(plan, replica, backwards, graph.relays) for replica in replicas}
            aggregates.update(reached)
            chosen = min(replicas, key=lambda r: reached[r.id] + beyond[r.id], default=None)
            if chosen is not None and reached[chosen.id] < inf:
                ends[chosen.node] = beyond[chosen.id]
        elif asked:
            for replica in replicas:
                ends[replica.node] = min(beyond[replica.id], ends.get(replica.node, inf))
        if asked:
            ways[name] = towards(backwards, ends, graph.relays)
    network = tree(graph, own.node)
    direct = [r for downstream in plan.routed(own.operator) for r in plan.of(downstream)]
    links = {r.id: network.costs[r.node] for r in direct if r.node in network.costs}
    return KnownCosts(
        links=links,
        beyond={r.id: beyond[r.id] for r in direct if beyond[r.id] < inf},
        metric=graph.metric,
        source=graph.source,
        taken_ns=graph.taken_ns,
        aggregates={r.id: aggregates[r.id] for r in direct if aggregates.get(r.id, inf) < inf},
        apart=_apart(graph, network, [r for r in direct if r.id in links]),
    )


def _reaching(plan: DeploymentPlan, replica: Replica, backwards: Links, relays: bool) -> float:
    from_all = towards(backwards, {replica.node: 0.0}, relays)
    inputs = plan.query.upstream(replica.operator)
    return aggregate([[from_all.get(r.node, inf) for r in plan.of(name)] for name in inputs])


def _apart(graph: CostGraph, network: Tree, reached: list[Replica]) -> dict[str, tuple[str, ...]]:
    """Returns for each replica those whose network paths share no node and do not hear each other."""
    cheapest = sorted(reached, key=lambda r: network.costs[r.node])[:MOST_COMPARED]
    paths = {r.id: frozenset(network.path(r.node)) for r in reached if r in cheapest}
    neighbours = {r: path.union(*(graph.costs.get(node, {}) for node in path)) for r, path in paths.items()}

    def are_apart(one: str, other: str) -> bool:
        # To a replica on this node there is no path that could interfere.
        return one != other and not (neighbours[one] & paths[other] or neighbours[other] & paths[one])

    return {one: found for one in paths if (found := tuple(o for o in paths if are_apart(one, o)))}


def situation(
    plan: DeploymentPlan,
    own: Replica,
    downstream: str,
    costs: KnownCosts,
    rule: Rule,
    current: str | None = None,
    queued: int = 0,
    now_ns: int = 0,
) -> Situation:
    """Returns the choice among the replicas of ``downstream``; ``current`` is the one that ``own`` sends
    to.
    """
    shared = is_shared(plan.query, downstream, rule.policy)
    current = costs.using.get(downstream) if shared else current
    found = Situation(
        candidates=tuple(_candidate(r.id, costs, shared) for r in plan.of(downstream)),
        current=current,
        # Each replica draws differently, though all have the experiment's seed.
        rule=replace(rule, seed=crc32(f"{rule.seed}/{own.id}/{downstream}".encode())),
        queued=queued,
        now_ns=now_ns,
        shared=shared,
        whole=is_whole(plan.query, downstream),
    )
    return _bounded(found)


def cost_to_sinks(situations: list[Situation]) -> float:
    """Returns what a replica with these choices costs its upstreams if it makes its own best choices."""
    return sum((_own_cost_of_best(each) for each in situations), 0.0)


def _own_cost_of_best(found: Situation) -> float:
    best = min(found.candidates, key=found.cost, default=None)
    return inf if best is None or found.cost(best) == inf or best.path is None else best.path


def _candidate(to: str, costs: KnownCosts, shared: bool) -> Candidate:
    link, beyond = costs.links.get(to), costs.beyond.get(to)
    reached = costs.aggregates.get(to) if shared else None
    return Candidate(
        to=to,
        link=link,
        path=None if link is None or beyond is None else link + beyond,
        aggregate=None if reached is None or beyond is None else reached + beyond,
        queue=costs.queues.get(to),
        apart=costs.apart.get(to, ()),
    )


def _bounded(found: Situation) -> Situation:
    """Limits the candidates. Always keeps the first in the plan and the one in use."""
    if len(found.candidates) <= MOST_CANDIDATES:
        return found
    cheapest = sorted(found.candidates, key=found.cost)[: MOST_CANDIDATES - 2]
    kept = {candidate.to for candidate in (*cheapest, found.candidates[0])} | {found.current}
    return replace(found, candidates=tuple(c for c in found.candidates if c.to in kept))
