"""Reads the plan of a dataflow for the analysis: which records are believed, where data begins and ends, and
clocks.
"""

from collections.abc import Mapping, Sequence

from node_agent.apps.dataflow.belief import scopes_of
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.birth_clocks import birth_clocks
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.results.contribution import Ends, PlanReader


def _ends(plan: DeploymentPlan) -> Ends:
    sources, sinks = (
        sorted({replica.node for name in names for replica in plan.of(name)})
        for names in (plan.query.sources(), plan.query.sinks())
    )
    return Ends(tuple(sources), tuple(sinks))


def _places(plan: DeploymentPlan) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for replica in plan.replicas:
        found.setdefault(replica.node, []).append(replica.id)
    return found


READER = PlanReader(deployment_in, _ends, _places, scopes_of, birth_clocks)
