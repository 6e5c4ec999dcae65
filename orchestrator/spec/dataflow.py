"""What makes a graph of operators a dataflow that can run: pure checks that find everything at once."""

from collections.abc import Mapping
from typing import NamedTuple

from orchestrator.spec.problems import Finding, did_you_mean, shown


class Vertex(NamedTuple):
    role: str
    after: tuple[str, ...]


def graph_findings(operators: Mapping[str, Vertex]) -> list[Finding]:
    """Paths are relative to the mapping of operators."""
    findings = [finding for name in operators for finding in _input_findings(name, operators)]
    findings += [finding for name in operators for finding in _output_findings(name, operators)]
    for role in ("source", "sink"):
        if all(vertex.role != role for vertex in operators.values()):
            findings.append(Finding((), f"there is no {role}", f"add an operator whose kind is a {role}"))
    cycle = find_cycle({name: v.after if v.role != "source" else () for name, v in operators.items()})
    if cycle:
        text = f"the query runs in a circle: {' → '.join([*cycle, cycle[0]])}"
        findings.append(Finding((cycle[0], "after"), text, "tuples flow from sources to sinks, never back"))
    return findings


def _input_findings(name: str, operators: Mapping[str, Vertex]) -> list[Finding]:
    role, after = operators[name]
    at = (name, "after")
    if role == "source":
        return [Finding(at, "a source has no input", "remove after")] if after else []
    if not after:
        text = f"{shown(name)} has no input"
        return [Finding((name,), text, f"say whose output it consumes: after: {_someone(name, operators)}")]
    findings = []
    for index, upstream in enumerate(after):
        if upstream in after[:index]:
            findings.append(Finding(at, f"{shown(upstream)} is named twice"))
        elif upstream not in operators:
            hint = did_you_mean(upstream, operators)
            findings.append(Finding(at, f"there is no operator {shown(upstream)}", hint))
        elif operators[upstream].role == "sink":
            findings.append(Finding(at, f"{shown(upstream)} is a sink: nothing comes after it"))
    return findings


def _output_findings(name: str, operators: Mapping[str, Vertex]) -> list[Finding]:
    if operators[name].role == "sink" or any(name in vertex.after for vertex in operators.values()):
        return []
    sinks = [other for other, vertex in operators.items() if vertex.role == "sink"]
    hint = f"add it to the after of {sinks[0]}, or remove it" if sinks else ""
    return [Finding((name,), f"nothing consumes the output of {shown(name)}", hint)]


def _someone(name: str, operators: Mapping[str, Vertex]) -> str:
    others = [other for other, vertex in operators.items() if other != name and vertex.role != "sink"]
    return others[-1] if others else "NAME"


def find_cycle(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """One cycle in the direction of the flow, starting with its first operator in the file; or nothing."""
    open_inputs = {name: [up for up in ups if up in after] for name, ups in after.items()}
    while ready := [name for name, ups in open_inputs.items() if not any(up in open_inputs for up in ups)]:
        for name in ready:
            del open_inputs[name]
    if not open_inputs:
        return []
    # What is left has an input that is left too: walking upstream must come back to where it was.
    walk = [next(iter(open_inputs))]
    while True:
        upstream = next(up for up in open_inputs[walk[-1]] if up in open_inputs)
        if upstream in walk:
            cycle = walk[walk.index(upstream) :][::-1]
            first = min(range(len(cycle)), key=lambda i: list(after).index(cycle[i]))
            return cycle[first:] + cycle[:first]
        walk.append(upstream)
