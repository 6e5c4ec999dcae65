"""Divides a stream by the queues of replicas: draws two, and takes the one with the shorter queue."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, usable
from node_agent.apps.dataflow.switching.route import Choice, spread


def power_of_two(situation: Situation, memory: Struct | None = None) -> Choice:
    """Draws two replicas at random and takes the shorter queue; one without report counts as the longest.

    Reports do not change between two decisions, so the chance of each replica follows from its rank: it wins
    the pairs in which the other queue is longer, and half of those with an equal one.
    """
    costs = situation.costs()
    waiting = {c.to: c.queue for c in situation.candidates if c.to in costs}
    longest = max((length for length in waiting.values() if length is not None), default=0)
    queues = {to: longest if length is None else length for to, length in waiting.items()}
    if len(queues) == 1:
        return Choice(spread([(to, 1.0) for to in queues], costs, seed=None))
    wins = [(to, sum(_wins(length, queues[o]) for o in queues if o != to)) for to, length in queues.items()]
    return Choice(spread(wins, costs, situation.rule.seed))


def _wins(own: int, other: int) -> float:
    return 1.0 if own < other else 0.5 if own == other else 0.0


def _reason(situation: Situation, choice: Choice) -> str:
    among = usable(situation)
    return divided(f"For each tuple two are drawn from {among}, and the shorter queue is taken", choice)


POLICY = SwitchingPolicy(
    power_of_two, "of two drawn for each tuple, the one with the shorter queue", queues=True, reason=_reason
)
