"""The deployment plan of an experiment: how many replicas, and which lives where (seed 000, III-A)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.policies import (
    Policy,
    Slot,
    arranged,
    at_random,
    colocate,
    heeding,
    shuffled,
    spread,
)
from orchestrator.apps.dataflow.planning.prospect import prospect_for
from orchestrator.apps.dataflow.planning.replication import Advice, Prospect, advise
from orchestrator.apps.dataflow.spec.placement import (
    AUTO,
    ColocatePlacement,
    ExplicitPlacement,
    RandomPlacement,
    SpreadPlacement,
)
from orchestrator.planning.distances import initial_distance
from orchestrator.spec.experiment import Experiment


def deployment_plan(experiment: Experiment) -> DeploymentPlan:
    """Of an experiment without findings: every replica has a node."""
    nodes = hosts(experiment, replica_counts(experiment))
    return DeploymentPlan(
        experiment.dataflow(), tuple(Replica(name, index, node) for (name, index), node in nodes.items())
    )


def hosts(experiment: Experiment, counts: Mapping[str, int]) -> dict[Slot, str]:
    """Operators in the query's order; replicas for which there is no node are missing."""
    placement = experiment.placement
    if isinstance(placement, ExplicitPlacement):
        return {
            (name, i): node
            for name, k in counts.items()
            for i, node in enumerate(placement.nodes.get(name, ())[:k])
        }
    query = experiment.dataflow()
    policy = heeding(experiment.topology.roles(), query.names(), _policy(experiment, placement))
    return arranged(query, counts, policy)


def _policy(
    experiment: Experiment, placement: RandomPlacement | SpreadPlacement | ColocatePlacement
) -> Policy:
    query, topology = experiment.dataflow(), experiment.topology
    order = shuffled(topology.node_names, experiment.seed if placement.seed is None else placement.seed)
    match placement:
        case RandomPlacement():
            return at_random(order)
        case SpreadPlacement():
            return spread(query, order, initial_distance(topology, experiment.seed))
        case ColocatePlacement():
            return colocate(query, order, cpu_needs(query), topology.cores())


@dataclass(frozen=True)
class Derived:
    """A k that nobody wrote down: what it was derived from, what was advised, and what there is room for."""

    operator: str
    replicas: int
    prospect: Prospect
    advice: Advice


def replica_counts(experiment: Experiment) -> dict[str, int]:
    """k of each operator, in the query's order; sources and sinks have one."""
    derived = {found.operator: found.replicas for found in derived_counts(experiment)}
    return {name: derived.get(name, _fixed(experiment, name)) for name in experiment.dataflow().names()}


def derived_counts(experiment: Experiment) -> list[Derived]:
    """For operators with ``auto``: as advised, or fewer if there is no room for so many.

    Where there is not, the largest k gives way first, and of equals the last.
    """
    prospects = {
        name: prospect_for(experiment, name)
        for name in experiment.dataflow().inner()
        if asked_for(experiment, name) == AUTO
    }
    advised = {name: advise(prospect) for name, prospect in prospects.items()}
    counts = {name: _fixed(experiment, name) for name in experiment.dataflow().names()}
    counts |= {name: advice.replicas for name, advice in advised.items()}
    while (largest := _largest(counts, advised)) and len(hosts(experiment, counts)) < sum(counts.values()):
        counts[largest] -= 1
    return [Derived(name, counts[name], prospects[name], advice) for name, advice in advised.items()]


def _largest(counts: Mapping[str, int], derived: Mapping[str, Advice]) -> str | None:
    """The operator whose k is to give way, if there is one that can."""
    shrinkable = [name for name in derived if counts[name] > 1]
    return max(reversed(shrinkable), key=lambda name: counts[name], default=None)


def asked_for(experiment: Experiment, name: str) -> int | Literal["auto"]:
    if name not in experiment.dataflow().inner():
        return 1
    replicas = experiment.replicas
    return replicas.get(name, 1) if isinstance(replicas, dict) else replicas


def _fixed(experiment: Experiment, name: str) -> int:
    asked = asked_for(experiment, name)
    return asked if isinstance(asked, int) else 1
