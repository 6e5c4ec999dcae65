"""The plan of one dataflow: where its replicas are, and what that means for nodes, faults and people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
from msgspec import structs

from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.faces.params import folder_of
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.telemetry.metrics import Sample
from orchestrator.apps.dataflow.planning.placement import Derived
from orchestrator.apps.dataflow.promises import PROMISES
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.apps.dataflow.setting import KIND, Setting
from orchestrator.planning.application import AppPlan, End, InUse
from orchestrator.planning.parts import Part
from orchestrator.spec.problems import Finding, Place, did_you_mean, listed, shown

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class DataflowPlan(AppPlan):
    """``persons``: who is in each of the galleries, by version, once they are in the run's directory."""

    name: str
    setting: Setting
    deployment: DeploymentPlan
    derived: tuple[Derived, ...] = ()
    persons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policy: str | None = None
    """The switching policy as its node names it, if not as the section does."""
    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "Replicas"

    @classmethod
    def recorded(cls, setting: Setting, record: Mapping[str, Any]) -> "DataflowPlan | None":
        deployment = deployment_in(record)
        return None if deployment is None else cls(setting.entry.name, setting, deployment)

    def nodes(self) -> tuple[str, ...]:
        return self.deployment.nodes()

    def agent_config(self, node: str) -> DataflowConfig:
        section = self.setting.section
        switching = section.switching
        return DataflowConfig(
            plan=self.deployment,
            switching=Switching(self._rule(), switching.period, Mode(switching.mode)),
            delivery=section.delivery.limits(),
            warmup=self.setting.scenario.warmup,
        )

    def _rule(self) -> Rule:
        rule = self.setting.section.rule(self.setting.scenario.seed)
        return rule if self.policy is None else structs.replace(rule, policy=self.policy)

    def record(self) -> dict[str, Any]:
        galleries = {"galleries": msgspec.to_builtins(dict(self.persons))} if self.persons else {}
        return {"plan": msgspec.to_builtins(self.deployment), **galleries}

    def seeds(self) -> dict[str, Any]:
        return {"placement": getattr(self.setting.section.placement, "seed", None)}

    def pinned(self, directory: Path) -> Self:
        from orchestrator.apps.dataflow.faces.galleries import pinned

        found = pinned(self.deployment, directory)
        return replace(self, deployment=found.plan, persons=found.persons)

    def needs(self, node: str) -> Iterator[Part]:
        """Raises QueryError if the query's own file cannot be imported."""
        from orchestrator.apps.dataflow.needs import parts_for

        return parts_for(self.deployment, node)

    def shipped(self, node: str, place: str) -> tuple[Self, dict[str, Path]]:
        """Raises QueryError."""
        from orchestrator.apps.dataflow.shipment import FOLDER, shipped, shipped_policy

        folder = FOLDER if self.name == KIND else f"{FOLDER}/{self.name}"
        shipment = shipped(self.deployment, node, place, folder)
        policy, code = shipped_policy(self.setting.section.switching.policy, place, self.name)
        return replace(self, deployment=shipment.plan, policy=policy), {**shipment.files, **code}

    def preload(self, folder: Path) -> list[str]:
        from orchestrator.apps.dataflow.faces.installed import preloaded

        return preloaded(self.deployment.query, folder / f"{self.name}.json")

    def picture_folders(self, node: str) -> tuple[str, ...]:
        sinks = self.deployment.query.sinks()
        shown = (replica.id for replica in self.deployment.on(node) if replica.operator in sinks)
        return tuple(folder_of(self.name, replica) for replica in shown)

    def traffic(self) -> tuple[tuple[End, End], ...]:
        query = self.deployment.query
        return tuple(product(self._ends(query.sources()), self._ends(query.sinks())))

    def _ends(self, operators: tuple[str, ...]) -> tuple[End, ...]:
        return tuple(End(name, replica.node) for name in operators for replica in self.deployment.of(name))

    def cut_off(self, islands: Mapping[str, int], why: str) -> list[Finding]:
        """Relays can be any node: one replica of each operator on the sink's island is enough."""
        at = self.setting.at("placement")
        found = (_cut_off(self.deployment, sink, islands, why, at) for sink in self.deployment.query.sinks())
        return [finding for finding in found if finding is not None]

    def node_of(self, part: Mapping[str, Any]) -> str | InUse | Finding:
        operator, index = str(part["operator"]), part["replica"] or 0
        names = self.deployment.query.names()
        if operator not in names:
            hint = did_you_mean(operator, names) or f"the query has {listed(names)}"
            return Finding(("operator",), f"the query has no operator {shown(operator)}", hint)
        replicas = self.deployment.of(operator)
        if part["in_use"]:
            if part["replica"] is not None:
                text = f"it is either the replica in use or {operator}/{index}"
                return Finding(("in_use",), text, "leave replica or in_use out")
            return InUse(self.name, operator, {replica.id: replica.node for replica in replicas})
        for replica in replicas:
            if replica.index == index:
                return replica.node
        text = f"{operator} has {len(replicas)} replicas, numbered from 0: there is no {index}"
        return Finding(("replica",), text)

    def in_use(self, what: str, samples: Mapping[str, Sequence[Sample]]) -> str | None:
        from orchestrator.apps.dataflow.in_use import replica_in_use, shares_in

        return replica_in_use(self.deployment, what, shares_in(self.name, self.deployment, samples))

    def harmed_by_crash(self, node: str) -> Finding | None:
        inner = self.deployment.query.inner()
        ends = [r.operator for r in self.deployment.on(node) if r.operator not in inner]
        if not ends:
            return self._beside_moving(node)
        text = f"{node} has the {listed(ends)}, and a source or sink that begins anew repeats its stream"
        return Finding((), text, "crash a replica in between, or silence the node")

    def _beside_moving(self, node: str) -> Finding | None:
        query = self.deployment.query
        for moving in self.deployment.moving:
            beside = {*query.upstream(moving.operator), *query.downstream(moving.operator)}
            if names := [r.operator for r in self.deployment.on(node) if r.operator in beside]:
                text = (
                    f"{node} has the {listed(names)}, which keeps tuples for {moving.operator}, which moves"
                )
                return Finding((), text, "crash a node that it moves from or to, or silence the node")
        return None

    def summary(self) -> list[tuple[str, str]]:
        return [
            ("Switching", self.setting.section.switching.summary()),
            ("Reliability", PROMISES[self.deployment.query.reliability]),
        ]

    def shown(self) -> "list[RenderableType]":
        from orchestrator.apps.dataflow.printing import shown_migrations, shown_replicas

        return [*shown_replicas(self.deployment, self.derived), *shown_migrations(self.deployment)]

    def document(self) -> dict[str, Any]:
        from orchestrator.apps.dataflow.printing import (
            derived_document,
            migrations_document,
            replicas_document,
        )

        migrations = migrations_document(self.deployment)
        return {
            "reliability": self.deployment.query.reliability,
            "replicas": replicas_document(self.deployment),
            **({"migrations": migrations} if migrations else {}),
            "derived": derived_document(self.derived),
        }

    def graph(self, form: str) -> str:
        from orchestrator.apps.dataflow.planning.query_graph import mermaid
        from orchestrator.apps.dataflow.planning.query_svg import svg

        return svg(self.deployment) if form == "svg" else mermaid(self.deployment)


def _cut_off(
    plan: DeploymentPlan, sink: str, islands: Mapping[str, int], why: str, at: Place
) -> Finding | None:
    (home,) = plan.of(sink)
    lost = [
        f"{operator} ({', '.join(replica.node for replica in plan.of(operator))})"
        for operator in plan.query.names()
        if sink in plan.query.reachable_from([operator])
        and all(islands[replica.node] != islands[home.node] for replica in plan.of(operator))
    ]
    if not lost:
        return None
    text = (
        f"the sink {sink} ({home.node}) can never be reached from {listed(lost)}: "
        f"nodes do not move, and {why}"
    )
    return Finding(at, text, "use a longer range or more power, other positions or another placement")
