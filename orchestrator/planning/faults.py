"""Turns the faults of an experiment into steps: which action on which node, and when."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple

from orchestrator.planning.application import AppPlan
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.faults import Fault, NamedTarget
from orchestrator.spec.problems import Finding, did_you_mean, listed, shown

FaultAction = Literal["unsilence", "restart", "silence", "crash"]
# Silence comes before crash: others must not receive the FINs that the kernel sends for the killed agent.
_ORDER: Sequence[FaultAction] = ("unsilence", "restart", "silence", "crash")
_UNDONE_BY: dict[str, FaultAction] = {"silence": "unsilence", "crash": "restart"}
Plans = Mapping[str, AppPlan]


class Step(NamedTuple):
    """One action on one node. ``at``: seconds since the measurement began."""

    at: float
    action: FaultAction
    node: str


def planned_faults(experiment: Experiment, plans: Plans) -> tuple[tuple[Step, ...], list[Finding]]:
    """Returns the steps in order of time, and what is wrong with the faults.

    A fault that lasts to the end of the run is not undone.
    """
    findings: list[Finding] = []
    steps: list[Step] = []
    until: dict[tuple[str, str], float] = {}
    for index, fault in sorted(enumerate(experiment.faults), key=lambda numbered: numbered[1].at):
        found, node = _examined(experiment, fault, plans)
        if not found and node is not None:
            if fault.at < until.get((fault.kind, node), 0.0):
                text = f"{node} is down already then: a {fault.kind} of it has not ended yet"
                found = [Finding(("at",), text, "let the first one end before, by its for")]
            until[fault.kind, node] = inf if fault.seconds is None else fault.at + fault.seconds
            steps += _steps(fault, node)
        findings += [Finding(("faults", index, *f.at), f.message, f.hint) for f in found]
    in_order = sorted(steps, key=lambda step: (step.at, _ORDER.index(step.action), step.node))
    return tuple(in_order), findings


def _steps(fault: Fault, node: str) -> list[Step]:
    steps = [Step(fault.at, fault.kind, node)]
    if fault.seconds is not None:
        steps.append(Step(fault.at + fault.seconds, _UNDONE_BY[fault.kind], node))
    return steps


def _examined(experiment: Experiment, fault: Fault, plans: Plans) -> tuple[list[Finding], str | None]:
    """Returns what is wrong with one fault alone, at places within it; and its target node."""
    findings = []
    if fault.at >= experiment.duration:
        text = f"{fault.at:g} s is not within the {experiment.duration:g} s of the measurement"
        findings.append(Finding(("at",), text))
    node = node_of(fault.target, plans)
    if isinstance(node, Finding):
        return [*findings, node._replace(at=(fault.kind, *node.at))], None
    if node not in experiment.topology.node_names:
        hint = did_you_mean(node, experiment.topology.node_names)
        return [*findings, Finding((fault.kind, "node"), f"there is no node {shown(node)}", hint)], None
    if fault.kind == "crash":
        harms = (plan.harmed_by_crash(node) for plan in plans.values())
        findings += [harm._replace(at=(fault.kind, *harm.at)) for harm in harms if harm is not None]
    return findings, node


def node_of(target: NamedTarget, plans: Plans) -> str | Finding:
    """Returns the node that a target names, or what is wrong with the target, at a place within it."""
    kind = target.kind()
    if kind is None:
        assert target.node is not None, "validated"
        return target.node
    able = [name for name, plan in plans.items() if plan.kind == kind]
    if target.app is not None and target.app not in able:
        what = "is of another kind" if target.app in plans else "is not an application of this experiment"
        hint = did_you_mean(target.app, able) or (f"there is {listed(able)}" if able else "")
        return Finding(("app",), f"{shown(target.app)} {what}", hint)
    if not able:
        return Finding((), f"no application of this experiment is a {kind}", "name a node")
    if target.app is None and len(able) > 1:
        text = f"there are several applications that it can be of: {', '.join(able)}"
        return Finding((), text, f"say which one, such as app: {able[0]}")
    return plans[target.app or able[0]].node_of(target.part(kind))
