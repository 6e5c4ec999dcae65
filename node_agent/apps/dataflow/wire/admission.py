"""Decides by the deployment plan which replicas may connect to those of a node."""

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.wire.claims import Claims
from node_agent.transport.messages import Pair


def refusal(pair: Pair, peer: str, node: str, plan: DeploymentPlan) -> str | None:
    """Return why node ``peer`` may not open a connection of ``pair`` to ``node``; None if it may.

    Replicas upstream may connect. If an operator takes several items at once, its other replicas may connect
    as well: they pass on what belongs to units that are made here. A node speaks for its own replicas only.
    """
    receiver = next((r for r in plan.on(node) if r.id == pair.receiver), None)
    if receiver is None:
        return "receiver"
    operators = plan.query.upstream(receiver.operator)
    if not isinstance(plan.query.operator(receiver.operator).takes, Each):
        operators = (*operators, receiver.operator)
    senders = (r.id for name in operators for r in plan.of(name) if r != receiver and r.node == peer)
    return None if pair.sender in senders else "sender"


def connections_between(plan: DeploymentPlan, sender: str, receiver: str) -> int:
    """Return how many connections node ``sender`` opens to node ``receiver`` at most, by the plan."""
    return sum(
        refusal(Pair(s.id, r.id), sender, receiver, plan) is None
        for s in plan.on(sender)
        for r in plan.on(receiver)
    )


class PlanAdmission:
    """The ``Admission`` of a dataflow, for the replicas of ``node``."""

    def __init__(self, plan: DeploymentPlan, node: str) -> None:
        self._plan = plan
        self._node = node

    def refusal(self, pair: Pair, node: str) -> str | None:
        return refusal(pair, node, self._node, self._plan)

    def expected(self, node: str) -> int:
        return connections_between(self._plan, node, self._node)

    def checks(self, pair: Pair) -> Claims:
        return Claims(self._plan, pair)
