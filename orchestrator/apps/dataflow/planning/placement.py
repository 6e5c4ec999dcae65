"""The deployment plan of an experiment: how many replicas, and which lives where (seed 000, III-A)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from orchestrator.apps.dataflow.planning.arrangement import Slot, shuffled
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.placement_policy import Site, placed_by
from orchestrator.apps.dataflow.planning.prospect import prospect_for
from orchestrator.apps.dataflow.planning.replication import Advice, Prospect, advise
from orchestrator.apps.dataflow.spec.placement import AUTO, DEFAULT, PLACEMENT_POLICIES
from orchestrator.planning.distances import initial_distance
from orchestrator.spec.experiment import Experiment


def deployment_plan(experiment: Experiment) -> DeploymentPlan:
    """Of an experiment without findings: every replica has a node."""
    nodes = hosts(experiment, replica_counts(experiment))
    return DeploymentPlan(
        experiment.dataflow(), tuple(Replica(name, index, node) for (name, index), node in nodes.items())
    )


def hosts(experiment: Experiment, counts: Mapping[str, int]) -> dict[Slot, str]:
    """Operators in the query's order; replicas for which there is no node are missing.

    Raises ExtensionError if a placement policy that others wrote fails.
    """
    name = policy_name(experiment)
    policy = PLACEMENT_POLICIES[name]
    site = _site(experiment)
    if PLACEMENT_POLICIES.is_builtin(name):
        return policy.hosts(site, counts)
    return placed_by(name, policy, site, counts)


def policy_name(experiment: Experiment) -> str:
    return str(getattr(experiment.placement, "policy", DEFAULT))


def _site(experiment: Experiment) -> Site:
    query, topology, settings = experiment.dataflow(), experiment.topology, experiment.placement
    seed = getattr(settings, "seed", None)
    return Site(
        query=query,
        order=shuffled(topology.node_names, experiment.seed if seed is None else seed),
        needs=cpu_needs(query),
        cores=topology.cores(),
        roles=topology.roles(),
        settings=settings,
        measure=lambda: initial_distance(topology, experiment.seed),
    )


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
