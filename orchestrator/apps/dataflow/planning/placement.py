"""Makes the deployment plan of a dataflow: how many replicas, and on which nodes (the paper, III-A)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.planning.arrangement import Slot, shuffled
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.placement_policy import Site, placed_by
from orchestrator.apps.dataflow.planning.prospect import prospect_for
from orchestrator.apps.dataflow.planning.replication import Advice, Prospect, advise
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.placement import AUTO, PLACEMENT_POLICIES
from orchestrator.planning.distances import initial_distance, mean_distance


@dataclass(frozen=True)
class Arrangement:
    """How many replicas operators have, and which nodes they are on; replicas without a node are missing."""

    derived: "tuple[Derived, ...]"
    counts: Mapping[str, int]
    hosts: Mapping[Slot, str]

    def plan(self, query: Query) -> DeploymentPlan:
        return DeploymentPlan(
            query, tuple(Replica(name, index, node) for (name, index), node in self.hosts.items())
        )


def arrange(setting: Setting) -> Arrangement:
    """Arranges the replicas of a section that was checked."""
    derived = tuple(derived_counts(setting))
    counts = replica_counts(setting, derived)
    return Arrangement(derived, counts, hosts(setting, counts))


def deployment_plan(setting: Setting) -> DeploymentPlan:
    """Makes the deployment plan of a checked application, in which every replica has a node."""
    return arrange(setting).plan(setting.query)


def hosts(setting: Setting, counts: Mapping[str, int]) -> dict[Slot, str]:
    """Returns nodes by operator, in the query's order; replicas for which there is no node are missing.

    Raises ExtensionError if a placement policy that others wrote fails.
    """
    name = setting.placement_policy()
    policy = PLACEMENT_POLICIES[name]
    site = _site(setting)
    if PLACEMENT_POLICIES.is_builtin(name):
        return policy.hosts(site, counts)
    return placed_by(name, policy, site, counts)


def _site(setting: Setting) -> Site:
    query, topology, seed = setting.query, setting.topology, setting.scenario.seed
    return Site(
        query=query,
        order=shuffled(topology.node_names, setting.placement_seed()),
        needs=cpu_needs(query),
        cores=topology.cores(),
        roles=topology.roles(),
        settings=setting.section.placement,
        measure=lambda: initial_distance(topology, seed),
        foresee=lambda: mean_distance(topology, seed, setting.scenario.warmup + setting.scenario.duration),
    )


@dataclass(frozen=True)
class Derived:
    """A derived k: what it was derived from, what was advised, and what there is room for."""

    operator: str
    replicas: int
    prospect: Prospect
    advice: Advice


def replica_counts(setting: Setting, derived: Iterable[Derived]) -> dict[str, int]:
    """Returns k of each operator, in the query's order; sources and sinks have one."""
    found = {each.operator: each.replicas for each in derived}
    return {name: found.get(name, _fixed(setting, name)) for name in setting.query.names()}


def derived_counts(setting: Setting) -> list[Derived]:
    """Returns k of operators with ``auto``: as advised, or fewer if there is no room for so many.

    If there is not, the largest k is reduced first; among equals, the last.
    """
    prospects = {
        name: prospect_for(setting, name)
        for name in setting.query.inner()
        if asked_for(setting, name) == AUTO
    }
    advised = {name: advise(prospect) for name, prospect in prospects.items()}
    counts = {name: _fixed(setting, name) for name in setting.query.names()}
    counts |= {name: advice.replicas for name, advice in advised.items()}
    while (largest := _largest(counts, advised)) and len(hosts(setting, counts)) < sum(counts.values()):
        counts[largest] -= 1
    return [Derived(name, counts[name], prospects[name], advice) for name, advice in advised.items()]


def _largest(counts: Mapping[str, int], derived: Mapping[str, Advice]) -> str | None:
    """Returns the operator whose k is reduced first, if any can be."""
    shrinkable = [name for name in derived if counts[name] > 1]
    return max(reversed(shrinkable), key=lambda name: counts[name], default=None)


def asked_for(setting: Setting, name: str) -> int | Literal["auto"]:
    if name not in setting.query.inner():
        return 1
    replicas = setting.section.replicas
    return replicas.get(name, 1) if isinstance(replicas, dict) else replicas


def _fixed(setting: Setting, name: str) -> int:
    asked = asked_for(setting, name)
    return asked if isinstance(asked, int) else 1
