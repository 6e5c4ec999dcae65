"""From a section to flows: names, pairs that are drawn, traces that are read, and what is wrong with them."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from node_agent.apps.flows.model import MOST_FLOWS, Flow, OnOff, Trace
from orchestrator.apps.flows.drawing import drawn_pairs, most_pairs
from orchestrator.apps.flows.section import FlowSection, FlowsSection
from orchestrator.apps.flows.trace_file import read_flow_trace
from orchestrator.mobility.trace_file import TraceError
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, shown


@dataclass
class Planned:
    """``traces``: by the digest of their files."""

    flows: list[Flow] = field(default_factory=list)
    traces: dict[str, Trace] = field(default_factory=dict)


def planned_flows(entry: AppEntry) -> Planned:
    """Raises Unusable with everything that is wrong, by places in the file."""
    section = section_of(entry)
    planned, findings = Planned(), []
    places: dict[str, str | int] = {}
    for place, name, said in section.items():
        at = entry.at("flows", place)
        found = list(_findings(said, at, entry))
        trace = ""
        if said.trace is not None and not found:
            trace = said.trace.digest
            try:
                planned.traces[trace] = read_flow_trace(said.trace.path, said.protocol)
            except TraceError as error:
                found.append(Finding((*at, "trace"), str(error), error.hint))
        findings += found
        if found:
            continue
        for flow in _flows(said, name or "", trace, entry):
            if flow.name in places:
                text = f'there is another flow "{flow.name}", at flows[{places[flow.name]}]'
                findings.append(Finding((*at, "name"), text, "give one of them a name of its own"))
            places[flow.name] = place
            planned.flows.append(flow)
    if len(planned.flows) > MOST_FLOWS:
        text = f"{len(planned.flows)} flows: at most {MOST_FLOWS} are run"
        findings.append(Finding(entry.at("flows"), text))
    if findings:
        raise Unusable(*findings)
    return planned


def traces_of(entry: AppEntry) -> dict[str, Trace]:
    """Those of a section that was checked before; what cannot be read any more is left out."""
    traces = {}
    for _, _, said in section_of(entry).items():
        if said.trace is not None:
            with suppress(TraceError):
                traces[said.trace.digest] = read_flow_trace(said.trace.path, said.protocol)
    return traces


def section_of(entry: AppEntry) -> FlowsSection:
    assert isinstance(entry.section, FlowsSection), "the registry finds applications by their sections"
    return entry.section


def _findings(said: FlowSection, at: Place, entry: AppEntry) -> Iterator[Finding]:
    nodes = entry.scenario.topology.node_names
    for key, node in (("from", said.source), ("to", said.to)):
        if node is not None and node not in nodes:
            yield Finding((*at, key), f"there is no node {shown(node)}", did_you_mean(node, nodes))
    if said.to is not None and said.to == said.source:
        text = f"the flow begins and ends at {said.to}: nothing of it would go over the network"
        yield Finding((*at, "to"), text)
    if said.pairs is not None and said.pairs > most_pairs(len(nodes)):
        text = f"there are only {most_pairs(len(nodes))} pairs of {len(nodes)} nodes"
        yield Finding((*at, "pairs"), text)
    whole = entry.scenario.warmup + entry.scenario.duration
    if said.start >= whole:
        text = f"the run is over by then: warm-up and measurement take {whole:g} s"
        yield Finding((*at, "start"), text)


def _flows(said: FlowSection, name: str, trace: str, entry: AppEntry) -> Iterator[Flow]:
    if said.pairs is None:
        assert said.source is not None and said.to is not None, "checked with the section"
        yield _flow(said, name or f"{said.source}-{said.to}", said.source, said.to, said.start, trace, entry)
        return
    seed = entry.scenario.seed
    rng = random.Random(f"flows/{seed}/{entry.name}/{name}")
    pairs = drawn_pairs(said.pairs, entry.scenario.topology.node_names, rng)
    width = len(str(len(pairs)))
    for number, (source, sink) in enumerate(pairs, 1):
        # Flows that begin at one moment and have one rate would always send at the same moments.
        start = said.start + rng.random() * _gap_s(said)
        yield _flow(said, f"{name or 'pair'}-{number:0{width}d}", source, sink, start, trace, entry)


def _gap_s(said: FlowSection) -> float:
    return 0.0 if said.rate is None else said.packet_size * 8 / said.rate


def _flow(
    said: FlowSection, name: str, source: str, sink: str, start: float, trace: str, entry: AppEntry
) -> Flow:
    on_off = None
    if said.on is not None and said.off is not None:
        on_off = OnOff(said.on, said.off, said.distribution)
    return Flow(
        name=name,
        source=source,
        sink=sink,
        protocol=said.protocol,
        size=said.packet_size,
        rate=said.rate,
        on_off=on_off,
        start=start,
        stop=said.stop,
        bytes=said.bytes,
        packets=said.packets,
        trace=trace,
        seed=f"{entry.scenario.seed}/{entry.name}/{name}",
        records=said.records,
    )
