"""The configuration of one dataflow, the same for every node, and checks whether a node can run it."""

from collections.abc import Iterator, Set

import msgspec
from msgspec import Struct

from node_agent.apps.base import AppConfig, Watched
from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.errors import QueryError
from node_agent.apps.dataflow.query.load import load_for
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.dataflow.switching.policy import policy_of
from node_agent.extensions import ExtensionError


class Switching(Struct, frozen=True):
    """The rule for adapting routes, the seconds between two decisions, and where costs come from."""

    rule: Rule = Rule()
    period: float = 2.0
    mode: Mode = Mode.LINK_STATE


class DataflowConfig(Struct, frozen=True):
    """``limits`` apply to best effort, ``delivery`` to queries that promise more."""

    plan: DeploymentPlan
    switching: Switching = Switching()
    limits: Limits = Limits()
    delivery: DeliveryLimits = DeliveryLimits(in_flight=64)
    warmup: float = 0.0
    """Seconds from the opening of sources to the measurement, which the times of migrations count from."""

    def as_app(self, name: str = "query") -> AppConfig:
        return AppConfig.of(name, "query", self)


def nodes_of(config: DataflowConfig) -> tuple[str, ...]:
    """Returns the nodes that have a replica, or may come to have one."""
    return config.plan.nodes()


def problems(config: DataflowConfig, node: str) -> list[str]:
    """Returns why ``node`` cannot run this."""
    found = []
    try:
        load_for(config.plan.query)
    except QueryError as error:
        found.append(str(error))
    found += _operator_problems(config.plan, node)
    try:
        policy_of(config.switching.rule.policy)
    except ExtensionError as error:
        found.append(str(error))
    if not config.switching.period > 0:
        found.append("periods must be positive")
    return found


def _operator_problems(plan: DeploymentPlan, node: str) -> Iterator[str]:
    for operator in plan.operators_on(node):
        spec = plan.query.operator(operator)
        kind = OPERATORS.get(spec.kind)
        if kind is None:
            yield f"operator {operator} is of the unknown kind {spec.kind!r}"
            continue
        try:
            msgspec.convert(spec.params, kind.params)
        except msgspec.ValidationError as error:
            yield f"operator {operator}: {error}"


def watched(config: DataflowConfig, node: str) -> Watched:
    """Returns the nodes of the replicas that this node's replicas send to, and of those behind them.

    In mode ``exchange`` the replicas downstream report what lies behind them, so only they need be measured.
    """
    query, plan = config.plan.query, config.plan
    direct = {name for own in plan.on(node) for name in query.downstream(own.operator)}
    below = direct if config.switching.mode is Mode.EXCHANGE else query.reachable_from(direct)

    def nodes(operators: Set[str]) -> tuple[str, ...]:
        found = dict.fromkeys(r.node for r in plan.replicas if r.operator in operators)
        return tuple(other for other in found if other != node)

    return Watched(nodes(direct), nodes(below))
