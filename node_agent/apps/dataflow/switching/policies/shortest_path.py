"""``adapt_route`` of the paper: takes the cheapest path to the sinks if it is cheaper by enough."""

from math import inf

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import by_cost
from node_agent.apps.dataflow.switching.route import Choice, Hop


def shortest_path(situation: Situation, memory: Struct | None = None) -> Choice:
    """Switches if the gain exceeds the threshold, or if the replica in use cannot be reached."""
    costs = situation.costs()
    if not costs:
        return Choice(None)
    # min() keeps the first of equals: the plan's order breaks ties.
    best = min(costs, key=lambda replica: costs[replica])
    current = situation.current
    if current is None or current not in costs:
        return Choice(_hop(situation, best))
    needed = situation.rule.threshold.of(costs[current])
    chosen = best if costs[current] - costs[best] > needed else current
    return Choice(_hop(situation, chosen), needed)


def _hop(situation: Situation, to: str) -> Hop | None:
    """Returns None if the inputs of an operator agree on a replica that this sender cannot reach: it
    waits.
    """
    candidate = situation.candidate(to)
    own_path = candidate.path if candidate is not None else None
    return None if own_path is None or own_path == inf else Hop(to, own_path)


POLICY = SwitchingPolicy(
    shortest_path,
    "the cheapest way to the sinks (the paper's Algorithm 1), left for a gain of more than `threshold`",
    several=False,
    reason=by_cost,
)
