"""Divides a stream evenly among all replicas in reach, in turn."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, usable
from node_agent.apps.dataflow.switching.route import Choice, spread


def round_robin(situation: Situation, memory: Struct | None = None) -> Choice:
    """Takes each in turn, in the plan's order: tuple τ goes to number τ modulo their number."""
    costs = situation.costs()
    return Choice(spread([(to, 1.0) for to in costs], costs, seed=None))


def _reason(situation: Situation, choice: Choice) -> str:
    return divided(f"Round robin over {usable(situation)}", choice)


POLICY = SwitchingPolicy(round_robin, "all replicas that can be reached, in turn", reason=_reason)
