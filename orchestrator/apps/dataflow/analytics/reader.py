"""How the analysis reads the plan of a dataflow: who may say what, where it begins and ends, whose clock."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import asdict

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.telemetry.belief import RULES, scope_of
from orchestrator.clocks.correction import births_in
from orchestrator.results.contribution import Ends, PlanReader, Scope
from orchestrator.runs.manifest import plan_in


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


def _scopes(plan: DeploymentPlan) -> Iterator[Scope]:
    for replica in plan.replicas:
        names = asdict(scope_of(replica, plan))
        yield Scope(replica.node, names.pop("replica"), names)


READER = PlanReader(plan_in, _ends, _places, _scopes, lambda: RULES, births_in)
