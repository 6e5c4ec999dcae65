"""Divides a stream among all replicas in reach: the cheaper the path through a replica, the larger its
share.
"""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, usable
from node_agent.apps.dataflow.switching.route import Choice, spread
from node_agent.apps.dataflow.switching.weights import inverse


def weighted(situation: Situation, memory: Struct | None = None) -> Choice:
    """Draws with chances proportional to 1/cost^exponent, where cost is that of the path to the sinks."""
    costs = situation.costs()
    return Choice(spread(inverse(costs, situation.rule.exponent), costs, situation.rule.seed))


def _reason(situation: Situation, choice: Choice) -> str:
    power = f"{situation.rule.exponent:g}"
    return divided(f"Drawn for each tuple, by 1/cost^{power}, from {usable(situation)}", choice)


POLICY = SwitchingPolicy(weighted, "drawn for each tuple, by 1/cost^`exponent`", reason=_reason)
