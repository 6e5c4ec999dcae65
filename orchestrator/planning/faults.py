"""From the faults that an experiment names to what is done to which node, and when."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.planning.placement import deployment_plan
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.faults import Fault

Deed = Literal["unsilence", "restart", "silence", "crash"]
# A node that dies falls silent first: nobody hears its kernel close the connections of what was killed on it.
_ORDER: Sequence[Deed] = ("unsilence", "restart", "silence", "crash")
_UNDONE_BY: dict[str, Deed] = {"silence": "unsilence", "crash": "restart"}


class Step(NamedTuple):
    """``at``: seconds since the measurement began."""

    at: float
    deed: Deed
    node: str


def victim_of(fault: Fault, plan: DeploymentPlan) -> str | None:
    """Its node; None if there is no such replica."""
    victim = fault.victim
    if victim.node is not None:
        return victim.node
    replicas = (r for r in plan.replicas if r.operator == victim.operator and r.index == victim.replica)
    return next((replica.node for replica in replicas), None)


def fault_steps(experiment: Experiment) -> tuple[Step, ...]:
    """Of an experiment without findings; what lasts to the end of the run is not undone."""
    if not experiment.faults:
        return ()
    plan = deployment_plan(experiment)
    steps = []
    for fault in experiment.faults:
        node = victim_of(fault, plan)
        assert node is not None, "validated"
        steps.append(Step(fault.at, fault.kind, node))
        if fault.seconds is not None:
            steps.append(Step(fault.at + fault.seconds, _UNDONE_BY[fault.kind], node))
    return tuple(sorted(steps, key=lambda step: (step.at, _ORDER.index(step.deed), step.node)))


def crashes(experiment: Experiment) -> Counter[str]:
    """How often each node's agent is killed."""
    return Counter(step.node for step in fault_steps(experiment) if step.deed == "crash")
