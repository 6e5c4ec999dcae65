"""Spreads a stream over all replicas that can be reached, the more the cheaper the way through them."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, usable
from node_agent.apps.dataflow.switching.route import Choice, spread
from node_agent.apps.dataflow.switching.weights import inverse


def weighted(situation: Situation, memory: Struct | None = None) -> Choice:
    """Drawn with chances proportional to 1/cost^exponent, cost being that of the way to the sinks."""
    costs = situation.costs()
    return Choice(spread(inverse(costs, situation.rule.exponent), costs, situation.rule.seed))


def _reason(situation: Situation, choice: Choice) -> str:
    power = f"{situation.rule.exponent:g}"
    return divided(f"Drawn for each tuple, by 1/cost^{power}, from {usable(situation)}", choice)


POLICY = SwitchingPolicy(weighted, "drawn for each tuple, by 1/cost^`exponent`", reason=_reason)
