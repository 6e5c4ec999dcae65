"""Divides a stream among all replicas in reach, drawn with equal chances (policy ``random``)."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, usable
from node_agent.apps.dataflow.switching.route import Choice, spread


def uniform(situation: Situation, memory: Struct | None = None) -> Choice:
    """Draws any of them, with equal chances."""
    costs = situation.costs()
    return Choice(spread([(to, 1.0) for to in costs], costs, situation.rule.seed))


def _reason(situation: Situation, choice: Choice) -> str:
    return divided(f"Drawn for each tuple, with equal chances, from {usable(situation)}", choice)


POLICY = SwitchingPolicy(uniform, "drawn for each tuple, with equal chances", reason=_reason)
