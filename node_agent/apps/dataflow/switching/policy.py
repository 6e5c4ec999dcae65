"""Replica selection: from the situation a replica is in to the hop its output takes (seed 000, Algorithm 1).

A policy is a pure function of the situation and its own memory, so that every decision can be tested alone
and replayed from its record.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.adaptive import adaptive
from node_agent.apps.dataflow.switching.algorithm1 import shortest_path
from node_agent.apps.dataflow.switching.backpressure import backpressure
from node_agent.apps.dataflow.switching.route import Choice, Hop
from node_agent.apps.dataflow.switching.spreading import power_of_two, round_robin, uniform, weighted

Policy = Callable[[Situation, Struct | None], Choice]


def static(situation: Situation, memory: Struct | None = None) -> Choice:
    """The first replica of the operator for ever: execution without network awareness."""
    for candidate in situation.candidates:
        return Choice(Hop(candidate.to, candidate.path))
    return Choice(None)


POLICIES: Mapping[str, Policy] = {
    "shortest_path": shortest_path,
    "static": static,
    "round_robin": round_robin,
    "random": uniform,
    "weighted": weighted,
    "power_of_two": power_of_two,
    "backpressure": backpressure,
    "adaptive": adaptive,
}


def choose(situation: Situation, memory: Struct | None = None) -> Choice:
    """As the situation's rule says, but whole streams go by Algorithm 1 unless the rule is static.

    Where results need several tuples, or tuples of several inputs, these must meet: a stream cannot be
    divided, and all inputs know of nothing in common but the aggregated costs that Algorithm 1 goes by.
    """
    policy = situation.rule.policy
    if situation.whole and policy != "static":
        return shortest_path(situation, memory)
    return POLICIES[policy](situation, memory)
