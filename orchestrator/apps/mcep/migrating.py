"""What an experiment file says of operators that move between brokers.

migrate: {plan: {mobiles: navigation}, state: 15 kB}
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from node_agent.apps.mcep.moving.config import (
    BetweenConfig,
    MigrateConfig,
    Mobiles,
    MoveConfig,
    PlanConfig,
    Policy,
)
from node_agent.apps.mcep.moving.settings import (
    EVEN_BANDWIDTH,
    EVEN_LATENCY_S,
    MOST_STATE,
    MOST_STEPS,
)
from node_agent.apps.mcep.situations import graph_of
from orchestrator.model.trace import Sample
from orchestrator.spec.base import Section
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.topology import Topology
from orchestrator.spec.units import DURATION, ROOM, Duration, PositiveDuration, PositiveLength
from orchestrator.spec.wires import wire_links

MOST_ROUTE = 2000
Pause = Annotated[float, DURATION.within(ge=0.25, le=86400)]
StateSize = Annotated[int, ROOM.within(le=MOST_STATE)]


class MoveSection(Section):
    """A migration at a given time."""

    at: Duration = Field(description="After sources open", examples=["20s"])
    operator: str = Field(examples=["slowing"])
    to: str = Field(description="The broker", examples=["b2"])


class PlanSection(Section):
    """Operators plan where to be, and agree on it with their neighbours."""

    policy: Policy = Field(
        default="weighted_sum", description="How operators plan if it is uncertain where mobiles will be"
    )
    mobiles: Mobiles = Field(
        default="linear",
        description="Where the focal object is expected: by dead reckoning, on its known drive, or where "
        "others went before",
    )
    step: Pause = Field(default=4.0, description="Operators may move once a step")
    horizon: PositiveDuration = Field(default=100.0, description="A plan covers so long")
    refresh: Pause = Field(default=20.0, description="The focal object plans anew so often at the latest")
    range: PositiveLength | None = Field(
        default=None, description="Brokers within this distance of the present one are considered, else all"
    )
    paths: Annotated[int, Field(strict=True, ge=1, le=32)] = Field(
        default=4, description="How many the policy k_shortest keeps"
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> "PlanSection":
        steps = round(self.horizon / self.step)
        if not 2 <= steps <= MOST_STEPS:
            text = f"a plan of {self.horizon:g} s in steps of {self.step:g} s has {steps} steps"
            raise unusable(text, f"2 to {MOST_STEPS} are supported", at=("horizon",))
        return self


class GreedySection(Section):
    """Each operator moves to where it is cheapest now, without knowing what comes: a baseline."""

    every: Pause = Field(default=5.0, description="It looks so often")


def _read_plan(value: Any) -> Any:
    if value is True or value is False:
        return {} if value else None
    return value


def _read_state(value: Any) -> Any:
    return {"": value} if isinstance(value, str | int | float) and not isinstance(value, bool) else value


class MigrateSection(Section):
    """Operators of a query move between brokers while events flow; results stay the same."""

    plan: Annotated[PlanSection | None, BeforeValidator(_read_plan)] = Field(
        default=None, description="They follow plans", examples=[{"mobiles": "navigation"}]
    )
    greedy: Annotated[GreedySection | None, BeforeValidator(_read_plan)] = Field(
        default=None, description="They go where it is cheapest now", examples=[{"every": "5s"}]
    )
    moves: tuple[MoveSection, ...] = Field(
        default=(),
        max_length=10_000,
        description="They move at given times",
        examples=[[{"at": "20s", "operator": "averaging", "to": "b2"}]],
    )
    method: str = Field(
        default="live", description="live: the old broker works on meanwhile; stop_and_copy: it stops first"
    )
    state: Annotated[
        dict[str, StateSize],
        BeforeValidator(_read_state, json_schema_input_type=str | int | dict[str, str | int]),
    ] = Field(
        default={},
        description="Immutable state that must be copied, of each operator or by operator",
        examples=["15 kB", {"slowing": "50 MB"}],
    )
    limit: PositiveDuration | None = Field(
        default=None, description="What plans allow a path from a source to the home", examples=["35 ms"]
    )
    room: dict[str, Annotated[int, Field(strict=True, ge=0, le=1_000_000)]] = Field(
        default={}, description="How many operators a broker takes; others take any number"
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> "MigrateSection":
        findings = []
        if self.method not in ("live", "stop_and_copy"):
            text = f"{shown(self.method)} is no method; there are live and stop_and_copy"
            findings.append(Finding(("method",), text))
        if self.plan is not None and self.greedy is not None:
            text = "plan and greedy are given: operators move by one of them"
            findings.append(Finding((), text, "leave one out"))
        if self.limit is not None and self.plan is None:
            text = "only plans know limits of latency"
            findings.append(Finding(("limit",), text, "say plan: {}"))
        if self.room and self.plan is None:
            findings.append(Finding(("room",), "only plans ask brokers for room", "say plan: {}"))
        if findings:
            raise Unusable(*findings)
        return self

    def findings(self, situation: str, brokers: Sequence[str], until: float) -> Iterator[Finding]:
        """What does not fit a query; places are keys of this section. ``until``: when clients leave."""
        operators = graph_of(situation, {}).by_name
        for name in self.state:
            if name and name not in operators:
                text = f"{situation} has no operator {shown(name)}"
                yield Finding(("state", name), text, f"it has {', '.join(operators)}")
        for number, move in enumerate(self.moves):
            if move.operator not in operators:
                text = f"{situation} has no operator {shown(move.operator)}"
                yield Finding(("moves", number, "operator"), text, f"it has {', '.join(operators)}")
            if move.to not in brokers:
                yield Finding(
                    ("moves", number, "to"), f"{shown(move.to)} is no broker", did_you_mean(move.to, brokers)
                )
            if move.at >= until:
                text = f"clients leave after {until:g} s, and nothing comes after that"
                yield Finding(("moves", number, "at"), text, "use an earlier time, or a longer run")
            if any((each.at, each.operator) == (move.at, move.operator) for each in self.moves[:number]):
                yield Finding(("moves", number, "at"), f"{move.operator} already moves at this time")
        for name in self.room:
            if name not in brokers:
                yield Finding(("room", name), f"{shown(name)} is no broker", did_you_mean(name, brokers))

    def config(self, situation: str, drive: Sequence[Sample]) -> MigrateConfig:
        """``drive`` is that of the focal object."""
        operators = graph_of(situation, {}).by_name
        every = self.state.get("", 0)
        state = {name: size for name in operators if (size := self.state.get(name, every))}
        plan = self.plan
        return MigrateConfig(
            "stop_and_copy" if self.method == "stop_and_copy" else "live",
            state,
            tuple(MoveConfig(each.at, each.operator, each.to) for each in self.moves),
            None
            if plan is None
            else PlanConfig(
                plan.policy,
                plan.mobiles,
                plan.step,
                round(plan.horizon / plan.step),
                plan.refresh,
                plan.range,
                plan.paths,
                _route(drive) if plan.mobiles == "navigation" else (),
            ),
            None if self.greedy is None else self.greedy.every,
            self.limit,
            dict(self.room),
        )


class OwnMigrateSection(MigrateSection):
    """How operators of one query move, whatever `migrate` beside `queries` says."""

    move: bool = Field(default=True, strict=True, description="Whether they move at all")


def _read_own(value: Any) -> Any:
    if isinstance(value, bool):
        return {"move": value}
    if isinstance(value, str | int | float):
        text = f"{shown(value)} does not say how operators move"
        raise unusable(text, "migrate: false, or for example migrate: {plan: {mobiles: navigation}}")
    return value


OwnMigrate = Annotated[
    OwnMigrateSection, BeforeValidator(_read_own, json_schema_input_type=bool | OwnMigrateSection)
]


def _route(drive: Sequence[Sample]) -> tuple[tuple[float, float, float], ...]:
    every = -(-len(drive) // MOST_ROUTE)
    return tuple((each.t, round(each.x, 2), round(each.y, 2)) for each in drive[::every])


def between(topology: Topology, brokers: Sequence[str]) -> BetweenConfig:
    """How far brokers are from each other: over wires and links that are always up, the shortest way by
    latency; where there is none, all are equally far."""
    links = list(wire_links(topology.wires))
    radio: object = topology.radio
    found: dict[str, dict[str, tuple[float, float]]] = {}

    def add(one: str, other: str, latency: float, rate: float) -> None:
        found.setdefault(one, {})[other] = found.setdefault(other, {})[one] = (latency, rate / 8)

    for each in links:
        add(each.a, each.b, each.latency, each.rate)
    if isinstance(radio, ContactRadio):
        for hub in radio.hubs:
            for other in topology.node_names:
                if other != hub:
                    add(hub, other, radio.latency, radio.rate)
        for link in radio.links:
            if link.always and not link.one_way:
                latency = radio.latency if link.latency is None else link.latency
                add(*link.between, latency, radio.rate if link.rate is None else link.rate)
    ways = {name: _ways(found, name) for name in brokers}
    even = EVEN_LATENCY_S, EVEN_BANDWIDTH
    rows = [[(0.0, even[1]) if a == b else ways[a].get(b, even) for b in brokers] for a in brokers]
    return BetweenConfig(
        tuple(tuple(latency for latency, _ in row) for row in rows),
        tuple(tuple(max(1.0, rate) for _, rate in row) for row in rows),
    )


def _ways(
    links: Mapping[str, Mapping[str, tuple[float, float]]], start: str
) -> dict[str, tuple[float, float]]:
    """By node, the least latency and the least rate on that way."""
    best: dict[str, tuple[float, float]] = {}
    heap = [(0.0, 0.0, start)]
    while heap:
        latency, slowness, name = heapq.heappop(heap)
        if name in best:
            continue
        best[name] = latency, 1 / slowness if slowness else EVEN_BANDWIDTH
        for other, (further, rate) in links.get(name, {}).items():
            if other not in best:
                heapq.heappush(heap, (latency + further, max(slowness, 1 / rate), other))
    return best


def migrate_lines(given: MigrateConfig) -> Iterator[str]:
    """Migration in words."""
    how = "live" if given.method == "live" else "stopped and copied"
    if given.plan is not None:
        plan = given.plan
        seen = {
            "linear": "by dead reckoning",
            "navigation": "on its known drive",
            "learned": "where others went",
        }[plan.mobiles]
        policy = plan.policy.replace("_", " ")
        line = (
            f"operators follow plans ({policy}) of {plan.steps} steps of {plan.step:g} s, the object {seen}"
        )
        yield line + (f", within {given.limit * 1e3:g} ms" if given.limit is not None else "") + f", {how}"
    elif given.greedy is not None:
        yield f"operators go where it is cheapest each {given.greedy:g} s, {how}"
    elif not given.moves:
        yield "operators stay where they are"
    for move in given.moves:
        yield f"{move.operator} moves to {move.to} at {move.at:g} s, {how}"
    if given.state:
        yield "state: " + ", ".join(f"{name} {size:,} B" for name, size in given.state.items())


def unmovable(suppression: bool, completeness: str, predicts: bool) -> Iterator[Finding]:
    """Why operators of a query cannot move; places are keys of the query."""
    if suppression:
        text = "with suppression operators keep what the last region brought, which does not move"
        yield Finding(("suppression",), text, "switch it off, or say migrate: false")
    if completeness == "best_effort":
        text = (
            "what operators drop with best effort depends on what came when, so no other broker could go on"
        )
        yield Finding(("completeness",), text, "say weak, or migrate: false")
    if completeness == "strong" or predicts:
        text = "graphs of regions end after a while, so their operators do not move"
        yield Finding(("predict" if predicts else "completeness",), text, "say migrate: false")
