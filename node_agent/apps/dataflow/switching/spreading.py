"""Policies that spread a stream over all replicas that can be reached, tuple by tuple."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.route import Choice, spread


def round_robin(situation: Situation, memory: Struct | None = None) -> Choice:
    """Each in turn, in the plan's order: tuple τ goes to number τ modulo their number."""
    costs = situation.costs()
    return Choice(spread([(to, 1.0) for to in costs], costs, seed=None))


def uniform(situation: Situation, memory: Struct | None = None) -> Choice:
    """Any of them, drawn with equal chances."""
    costs = situation.costs()
    return Choice(spread([(to, 1.0) for to in costs], costs, situation.rule.seed))


def weighted(situation: Situation, memory: Struct | None = None) -> Choice:
    """Drawn with chances proportional to 1/cost^exponent, cost being that of the way to the sinks."""
    costs = situation.costs()
    return Choice(spread(inverse(costs, situation.rule.exponent), costs, situation.rule.seed))


def power_of_two(situation: Situation, memory: Struct | None = None) -> Choice:
    """Of two drawn at random, the one with the shorter queue; who has not reported counts as the longest.

    Between two decisions the reports stand still, so that the chance to be picked follows from the ranks: a
    replica wins those pairs in which the other's queue is longer, and half of those with an equal one.
    """
    costs = situation.costs()
    waiting = {c.to: c.queue for c in situation.candidates if c.to in costs}
    longest = max((length for length in waiting.values() if length is not None), default=0)
    queues = {to: longest if length is None else length for to, length in waiting.items()}
    if len(queues) == 1:
        return Choice(spread([(to, 1.0) for to in queues], costs, seed=None))
    wins = [(to, sum(_wins(length, queues[o]) for o in queues if o != to)) for to, length in queues.items()]
    return Choice(spread(wins, costs, situation.rule.seed))


def inverse(costs: dict[str, float], exponent: float) -> list[tuple[str, float]]:
    """Weights 1/cost^exponent relative to the cheapest; what costs nothing leaves nothing to the others."""
    cheapest = min(costs.values(), default=0.0)
    if cheapest <= 0:
        return [(to, 1.0 if cost <= 0 else 0.0) for to, cost in costs.items()]
    return [(to, (cheapest / cost) ** exponent) for to, cost in costs.items()]


def _wins(own: int, other: int) -> float:
    return 1.0 if own < other else 0.5 if own == other else 0.0
