"""Describes a deployment plan as a graph, and draws it for Mermaid."""

from html import escape
from typing import NamedTuple

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow

COLOURS = {"source": "#2f7d5b", "operator": "#33518f", "sink": "#8a4b2f"}


class Step(NamedTuple):
    """The texts about one operator."""

    name: str
    role: str
    kind: str
    rules: tuple[str, ...]
    replicas: tuple[str, ...]


def steps_of(plan: DeploymentPlan) -> list[Step]:
    query = plan.query
    sources, sinks = query.sources(), query.sinks()
    steps = []
    for name in query.topological():
        spec = query.operator(name)
        role = "source" if name in sources else "sink" if name in sinks else "operator"
        replicas = tuple(f"{replica.index} → {replica.node}" for replica in plan.of(name))
        steps.append(Step(name, role, spec.kind, rules_of(spec), replicas))
    return steps


def rules_of(spec: OperatorSpec) -> tuple[str, ...]:
    rules = []
    match spec.takes:
        case CountWindow(size, slide):
            rules.append(f"window {size}" + (f", slide {slide}" if slide != size else ""))
        case TimeWindow(size, slide):
            rules.append(f"window {size / 1e9:g} s" + (f", slide {slide / 1e9:g} s" if slide != size else ""))
        case SameTau():
            rules.append("join on τ")
        case Each():
            pass
    policy = spec.on_error
    if policy.retries or policy.then != "stop":
        retry = f"retry {policy.retries}, then " if policy.retries else ""
        rules.append(f"on error {retry}{policy.then.replace('_', ' ')}")
    return tuple(rules)


def edges_of(plan: DeploymentPlan) -> list[tuple[str, str, str]]:
    """Returns edges: from, to, and label."""
    return [
        (upstream, operator.name, f"buffer {room}" if (room := operator.buffers.get(upstream)) else "")
        for operator in plan.query.operators
        for upstream in operator.after
    ]


def mermaid(plan: DeploymentPlan) -> str:
    """Returns a flowchart in Mermaid's language, to paste into Markdown."""
    steps = steps_of(plan)
    ids = {step.name: f"s{number}" for number, step in enumerate(steps)}
    lines = ["flowchart LR"]
    for step in steps:
        text = "<br/>".join(
            [f"<b>{_plain(step.name)}</b>", *map(_plain, (step.kind, *step.rules, *step.replicas))]
        )
        opening, closing = ("[", "]") if step.role == "operator" else ("([", "])")
        lines.append(f'  {ids[step.name]}{opening}"{text}"{closing}:::{step.role}')
    for start, end, label in edges_of(plan):
        lines.append(f"  {ids[start]} -->{f'|{label}|' if label else ''} {ids[end]}")
    lines += [f"  classDef {role} stroke:{colour},fill:#ffffff" for role, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return escape(text).replace("|", "&#124;")
