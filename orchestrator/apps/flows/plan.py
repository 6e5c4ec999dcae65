"""The plan of the flows of one run: which node sends what to whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from node_agent.apps.flows.model import Flow, FlowsConfig, Trace
from orchestrator.apps.flows.words import flow_in_words
from orchestrator.planning.application import AppPlan, End
from orchestrator.spec.problems import Finding, Place, did_you_mean, listed, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

KIND = "flows"


def flows_in(record: Mapping[str, Any]) -> tuple[Flow, ...] | None:
    """From what a manifest records of them; None if it cannot be read."""
    try:
        return msgspec.convert(record["flows"], tuple[Flow, ...])
    except (msgspec.ValidationError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class FlowsPlan(AppPlan):
    """``traces``: by the digests that flows name them by. ``at``: where the section is in the file."""

    name: str
    flows: tuple[Flow, ...]
    traces: Mapping[str, Trace] = field(default_factory=dict, repr=False)
    at: Place = ()
    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "Flows"

    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(end for flow in self.flows for end in (flow.source, flow.sink)))

    def agent_config(self, node: str) -> FlowsConfig:
        flows = tuple(flow for flow in self.flows if node in (flow.source, flow.sink))
        used = {flow.trace for flow in flows if flow.source == node}
        return FlowsConfig(flows, {digest: trace for digest, trace in self.traces.items() if digest in used})

    def record(self) -> dict[str, Any]:
        return {"flows": msgspec.to_builtins(self.flows)}

    def traffic(self) -> tuple[tuple[End, End], ...]:
        return tuple((End(flow.name, flow.source), End(flow.name, flow.sink)) for flow in self.flows)

    def cut_off(self, islands: Mapping[str, int], why: str) -> list[Finding]:
        lost = [flow for flow in self.flows if islands[flow.source] != islands[flow.sink]]
        if not lost:
            return []
        named = listed([f"{flow.name} ({flow.source} to {flow.sink})" for flow in lost[:3]])
        more = f", and {len(lost) - 3} more" if len(lost) > 3 else ""
        text = f"the sink of {named}{more} can never be reached: nodes do not move, and {why}"
        hint = "use a longer range or more power, other positions or other ends"
        return [Finding((*self.at, "flows"), text, hint)]

    def node_of(self, part: Mapping[str, Any]) -> str | Finding:
        names = [flow.name for flow in self.flows]
        for flow in self.flows:
            if flow.name == part["flow"]:
                return flow.source if part["end"] == "source" else flow.sink
        hint = did_you_mean(part["flow"], names)
        return Finding(("flow",), f"there is no flow {shown(part['flow'])}", hint)

    def harmed_by_crash(self, node: str) -> Finding | None:
        begun = [flow.name for flow in self.flows if flow.source == node]
        if not begun:
            return None
        text = f"the flow {begun[0]} begins at {node}, and a source that begins anew repeats its schedule"
        return Finding((), text, "crash a node where no flow begins, or silence the node")

    def summary(self) -> list[tuple[str, str]]:
        if len(self.flows) == 1:
            return [("Flow", flow_in_words(self.flows[0]))]
        protocols = [p.upper() for p in ("udp", "tcp") if any(flow.protocol == p for flow in self.flows)]
        return [("Flows", f"{len(self.flows)} of {' and '.join(protocols)}")]

    def shown(self) -> "list[RenderableType]":
        from orchestrator.apps.flows.words import flow_table

        return [flow_table(self.flows)]

    def document(self) -> dict[str, Any]:
        return self.record()
