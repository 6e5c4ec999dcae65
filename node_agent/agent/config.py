"""What an agent is told before it starts, and whether it can run on that."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

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
from node_agent.ports import Address
from node_agent.transport.authentication import MIN_KEY
from node_agent.transport.limits import LinkLimits


class Switching(Struct, frozen=True):
    """The rule that routes are adapted by, the seconds between two times, and where costs are known from."""

    rule: Rule = Rule()
    period: float = 2.0
    mode: Mode = Mode.LINK_STATE


class AgentConfig(Struct, frozen=True):
    """All that an agent is told. ``addresses`` says where each node's agent listens for tuples.

    ``keys`` are those that this node shares with each node, itself included (``transport.keys``): who has
    one is taken for that node. Never to be printed.
    ``limits`` are those of best effort, ``delivery`` those of queries that promise more.
    ``node_costs`` are added to every link that leads to the node, in units of the metric. ``cores``: on how
    many operators can compute at once.
    """

    run: str
    node: str
    plan: DeploymentPlan
    addresses: dict[str, Address]
    keys: dict[str, bytes]
    switching: Switching = Switching()
    sample_period: float = 1.0
    overhead_period: float = 5.0
    limits: Limits = Limits()
    delivery: DeliveryLimits = DeliveryLimits(in_flight=64)
    links: LinkLimits = LinkLimits()
    cores: int = 1
    node_costs: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"AgentConfig(run={self.run!r}, node={self.node!r})"


class BadConfig(ValueError):
    """The configuration names something that does not exist or cannot be used."""


def check(config: AgentConfig) -> None:
    """Raises BadConfig, naming everything that is wrong."""
    problems = []
    try:
        load_for(config.plan.query)
    except QueryError as error:
        problems.append(str(error))
    problems += _plan_problems(config)
    try:
        policy_of(config.switching.rule.policy)
    except ExtensionError as error:
        problems.append(str(error))
    if not (config.switching.period > 0 and config.sample_period > 0 and config.overhead_period > 0):
        problems.append("periods must be positive")
    if config.cores < 1:
        problems.append("a node has at least one core")
    if not all(0 <= cost < float("inf") for cost in config.node_costs.values()):
        problems.append("node costs cannot be negative or infinite")
    if problems:
        raise BadConfig(f"agent {config.node} cannot run: {'; '.join(problems)}")


def _plan_problems(config: AgentConfig) -> Iterator[str]:
    for node in dict.fromkeys((config.node, *(r.node for r in config.plan.replicas))):
        if node not in config.addresses:
            yield f"node {node} has no address"
        key = config.keys.get(node, b"")
        if len(key) < MIN_KEY:
            yield f"the key shared with node {node} has {len(key)} bytes, and needs {MIN_KEY}"
    for operator in dict.fromkeys(r.operator for r in config.plan.on(config.node)):
        spec = config.plan.query.operator(operator)
        kind = OPERATORS.get(spec.kind)
        if kind is None:
            yield f"operator {operator} is of the unknown kind {spec.kind!r}"
            continue
        try:
            msgspec.convert(spec.params, kind.params)
        except msgspec.ValidationError as error:
            yield f"operator {operator}: {error}"
