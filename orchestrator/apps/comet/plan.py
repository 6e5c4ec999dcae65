"""The plan of detecting events in one run: which node does what, and what it promises."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from node_agent.apps.comet.model import DetectConfig, problems
from orchestrator.planning.application import AppPlan, End

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrator.apps.comet.planned import Detection

KIND = "detect"
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""A manifest may be somebody else's."""


class Promise(msgspec.Struct, frozen=True):
    """Of one requested pattern. ``pattern``: its text; ``delay``: the most by the plan, in seconds."""

    name: str
    pattern: str
    sink: str
    tolerance: Amount
    delay: Amount


class LinkEstimate(msgspec.Struct, frozen=True):
    """What a direction of a link is expected to carry per second. ``cost``: of one event.

    ``edp``, ``eap``: the disconnection and active periods that the plan assumes, in seconds.
    """

    lower: str
    upper: str
    instances: Amount
    requests: Amount
    cost: Amount
    edp: Amount | None = None
    eap: Amount | None = None


class Recorded(msgspec.Struct, frozen=True):
    """What a manifest has of it. ``cost``: estimated, per second. ``rates``: of events, as assumed."""

    configs: dict[str, DetectConfig]
    promises: tuple[Promise, ...]
    links: tuple[LinkEstimate, ...]
    cost: Amount
    rates: dict[str, Amount] = {}


def recorded_in(record: Mapping[str, Any]) -> Recorded | None:
    """From what a manifest records; None if it cannot be read."""
    try:
        found = msgspec.convert(record["detection"], Recorded)
    except (msgspec.ValidationError, KeyError, TypeError):
        return None
    return None if any(problems(config, node) for node, config in found.configs.items()) else found


@dataclass(frozen=True)
class DetectPlan(AppPlan):
    """``planned``: None if it comes from a manifest. ``notes``: what is to be said of it first."""

    name: str
    recorded: Recorded
    planned: "Detection | None" = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()
    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "Detection of events"

    def nodes(self) -> tuple[str, ...]:
        configs = self.recorded.configs.items()
        return tuple(node for node, each in configs if each.events or each.plan.streams)

    def agent_config(self, node: str) -> DetectConfig:
        return self.recorded.configs[node]

    def record(self) -> dict[str, Any]:
        return {"detection": msgspec.to_builtins(self.recorded)}

    def traffic(self) -> tuple[tuple[End, End], ...]:
        sources = {
            each.name: node for node, config in self.recorded.configs.items() for each in config.events
        }
        used: dict[tuple[End, End], None] = {}
        for config in self.recorded.configs.values():
            sinks = {task.number: task for task in config.plan.tasks}
            for stream in config.plan.streams:
                task = sinks[stream.task]
                for event in stream.events:
                    used[End(event, sources[event]), End(task.request, task.sink)] = None
        return tuple(used)

    def summary(self) -> list[tuple[str, str]]:
        promises = self.recorded.promises
        if len(promises) == 1:
            only = promises[0]
            return [("Detect", f"{only.name} at {only.sink}: {only.pattern}")]
        return [("Detect", f"{len(promises)} patterns")]

    def shown(self) -> "list[RenderableType]":
        from orchestrator.apps.comet.printed import plan_lines

        return [] if self.planned is None else list(plan_lines(self.planned, self.notes))

    def document(self) -> dict[str, Any]:
        recorded = self.recorded
        return {
            "patterns": [msgspec.to_builtins(each) for each in recorded.promises],
            "links": [msgspec.to_builtins(each) for each in recorded.links],
            "cost_per_minute": recorded.cost * 60,
            "rates": recorded.rates,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def graph(self, form: str) -> str:
        from orchestrator.apps.comet.printed import mermaid, svg

        return svg(self.recorded) if form == "svg" else mermaid(self.recorded)


def plan_of(name: str, planned: "Detection") -> DetectPlan:
    from orchestrator.apps.comet.planning.together import discounts, flow_of, traffic_of

    promises = tuple(
        Promise(
            request.name,
            _pattern_text(planned, request.name),
            request.sink,
            request.tolerance,
            max(planned.joint.plans[place].delay for place in planned.of_request(request.name)),
        )
        for request in planned.requests
    )
    carried: dict[tuple[str, str], list[float]] = {}
    for plan in planned.joint.plans:
        for edge, traffic in traffic_of(plan, planned.given):
            for hop in edge.hops:
                of_link = [hop.cost, hop.link.edp, hop.link.eap]
                sums = carried.setdefault((hop.lower, hop.upper), [0.0, 0.0, *of_link])
                sums[1] += traffic.requests
    unsent = discounts([flow_of(plan, planned.given) for plan in planned.joint.plans])
    for (lower, upper, event), share in unsent.items():  # what several plans send goes over a link once
        carried[lower, upper][0] += planned.given.sources[event].rate * (1 - share)
    links = tuple(LinkEstimate(*pair, *sums) for pair, sums in sorted(carried.items()))
    rates = {event: source.rate for event, source in planned.given.sources.items()}
    recorded = Recorded(planned.configs, promises, links, planned.joint.cost, rates)
    return DetectPlan(name, recorded, planned)


def _pattern_text(planned: "Detection", name: str) -> str:
    from node_agent.apps.comet.patterns import printed

    return next(printed(request.pattern) for request in planned.requests if request.name == name)
