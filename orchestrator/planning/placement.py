"""Which replica lives on which node: the deployment plan of an experiment (seed 000, III-A).

Random placement is nested, so that a comparison of k is paired: a larger k adds replicas and moves none. Each
replica has a place in one order of the nodes: sources and sinks first, then replica 0 of every operator, then
replica 1, and so on. That order is by digest of seed and node name, so it depends on nothing else.
"""

import hashlib
from collections.abc import Sequence

from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.query import Query
from orchestrator.spec.experiment import Experiment, ExplicitPlacement

Slot = tuple[str, int]
"""An operator and the index of one of its replicas."""


def deployment_plan(experiment: Experiment) -> DeploymentPlan:
    """One replica per node, operators in the query's order."""
    query = experiment.dataflow()
    counts = experiment.replica_counts()
    placement = experiment.placement
    if isinstance(placement, ExplicitPlacement):
        nodes = {(name, i): placement.nodes[name][i] for name, k in counts.items() for i in range(k)}
    else:
        seed = experiment.seed if placement.seed is None else placement.seed
        nodes = _random_nodes(query, counts, shuffled(experiment.topology.node_names, seed))
    return DeploymentPlan(query, tuple(Replica(name, index, node) for (name, index), node in nodes.items()))


def shuffled(nodes: Sequence[str], seed: int) -> list[str]:
    return sorted(nodes, key=lambda node: hashlib.sha256(f"placement/{seed}/{node}".encode()).digest())


def _random_nodes(query: Query, counts: dict[str, int], order: list[str]) -> dict[Slot, str]:
    """Beyond the places that every k shares, uneven replication fills what is left."""
    ends = [name for name in query.names() if name not in query.inner()]
    rounds = max(counts.values())
    ranked = [(name, 0) for name in ends] + [(name, i) for i in range(rounds) for name in query.inner()]
    wanted = [(name, index) for name, index in ranked if index < counts[name]]
    shared = dict(zip(ranked, order, strict=False))
    placed = {slot: shared[slot] for slot in wanted if slot in shared}
    taken = frozenset(placed.values())
    left = iter([node for node in order if node not in taken])
    placed.update({slot: next(left) for slot in wanted if slot not in placed})
    return {(name, index): placed[name, index] for name, k in counts.items() for index in range(k)}
