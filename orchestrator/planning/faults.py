"""Turns the faults of an experiment into steps: which action, on whom, and when."""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from orchestrator.planning.application import AppPlan, InUse
from orchestrator.planning.fault_effects import Effect, air_effect, on_node
from orchestrator.runs.outages import ENDED_BY
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.faults import Fault, Kind, NamedTarget
from orchestrator.spec.problems import Finding, did_you_mean, listed, shown
from orchestrator.spec.topology import Topology

Plans = Mapping[str, AppPlan]


class PlannedFault(NamedTuple):
    """``does``: what it does, or whom it is to hit, if only the run knows. ``key`` tells it from others."""

    key: str
    kind: Kind
    does: Effect | InUse

    @property
    def subject(self) -> str:
        """Whom it hits, in words."""
        return self.does.subject if isinstance(self.does, Effect) else f"the {self.does.what} in use"


class Step(NamedTuple):
    """One fault begins or ends. ``at``: seconds since the measurement began."""

    at: float
    begins: bool
    fault: PlannedFault

    @property
    def action(self) -> str:
        return self.fault.kind if self.begins else ENDED_BY[self.fault.kind]

    def order(self) -> tuple[float, bool, bool, str]:
        """At one moment ends come before begins, and changes of the air before crashes: others must not
        receive the FINs that the kernel sends for a killed agent.
        """
        return self.at, self.begins, self.fault.kind == "crash", self.fault.subject


def planned_faults(experiment: Experiment, plans: Plans) -> tuple[tuple[Step, ...], list[Finding]]:
    """Returns the steps in order of time, and what is wrong with the faults.

    A fault that lasts to the end of the run is not undone.
    """
    findings: list[Finding] = []
    steps: list[Step] = []
    until: dict[tuple[str, str], float] = {}
    for index, fault in sorted(enumerate(experiment.faults), key=lambda numbered: numbered[1].at):
        found = _time_findings(experiment, fault)
        does = effect_of(fault, experiment.topology, plans)
        if isinstance(does, list):
            found += does
        else:
            planned = PlannedFault(str(index), fault.kind, does)
            what = fault.kind, planned.subject
            if not found and isinstance(does, Effect) and fault.at < until.get(what, 0.0):
                found.append(_too_early(*what))
            until[what] = inf if fault.seconds is None else fault.at + fault.seconds
            steps.append(Step(fault.at, True, planned))
            if fault.seconds is not None:
                steps.append(Step(fault.at + fault.seconds, False, planned))
        findings += [Finding(("faults", index, *f.at), f.message, f.hint) for f in found]
    return tuple(sorted(steps, key=Step.order)), findings


def _too_early(kind: Kind, subject: str) -> Finding:
    what = f"{subject} is down already then" if kind in ("crash", "silence") else f"{subject}: too early"
    text = f"{what}: a {kind} of it has not ended yet"
    return Finding(("at",), text, "let the first one end before, by its for")


def _time_findings(experiment: Experiment, fault: Fault) -> list[Finding]:
    if fault.at < experiment.duration:
        return []
    text = f"{fault.at:g} s is not within the {experiment.duration:g} s of the measurement"
    return [Finding(("at",), text)]


def effect_of(fault: Fault, topology: Topology, plans: Plans) -> Effect | InUse | list[Finding]:
    """Returns what a fault does, or what is wrong with it, at places within it."""
    target = fault.target
    if target is None:
        done = air_effect(fault, topology)
        return [f._replace(at=(fault.kind, *f.at)) for f in done] if isinstance(done, list) else done
    hit = node_of(target, plans)
    if isinstance(hit, Finding):
        return [hit._replace(at=(fault.kind, *hit.at))]
    nodes = tuple(hit.parts.values()) if isinstance(hit, InUse) else (hit,)
    names = topology.node_names
    for node in nodes:
        if node not in names:
            return [
                Finding((fault.kind, "node"), f"there is no node {shown(node)}", did_you_mean(node, names))
            ]
    if fault.kind == "crash":
        harms = (plan.harmed_by_crash(node) for node in nodes for plan in plans.values())
        if found := [harm._replace(at=(fault.kind, *harm.at)) for harm in harms if harm is not None]:
            return found
    return hit if isinstance(hit, InUse) else on_node(fault.kind, hit)


def node_of(target: NamedTarget, plans: Plans) -> str | InUse | Finding:
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
