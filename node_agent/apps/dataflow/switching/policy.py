"""Switching policies: from the situation a replica is in to the hop its output takes (seed 000, Algorithm 1).

A policy is a pure function of the situation and its own memory, so that every decision can be tested alone
and replayed from its record. What there is to know about it besides is declared in one ``SwitchingPolicy``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.route import Choice
from node_agent.extensions import ExtensionError, Registry
from node_agent.extensions.files import is_reference

Decide = Callable[[Situation, Struct | None], Choice]
Tell = Callable[[Situation, Choice], str]
DEFAULT = "shortest_path"
WHAT = "switching policy"


@dataclass(frozen=True)
class SwitchingPolicy:
    """A way to choose among the replicas of a downstream operator.

        def cheapest_link(situation: Situation, memory: Struct | None) -> Choice: ...

        POLICY = SwitchingPolicy(cheapest_link, "the replica that is nearest, whatever lies behind it")

    ``several``: it may divide a stream among replicas; then all senders of an operator with windows or joins
    agree on one replica of it. ``queues``: it goes by how many tuples wait at replicas, so that these tell
    each other. ``adapts``: it heeds the network at all. ``reason`` says in words why it made a choice.
    """

    decide: Decide
    description: str = ""
    several: bool = True
    queues: bool = False
    adapts: bool = True
    reason: Tell | None = None


def checked_policy(name: str, value: object) -> SwitchingPolicy:
    """A SwitchingPolicy, or a function that decides and nothing else."""
    if isinstance(value, SwitchingPolicy):
        return value
    if not callable(value) or isinstance(value, type):
        kind = "a class" if isinstance(value, type) else type(value).__name__
        raise ExtensionError(f"{name} is {kind}, neither a function nor a SwitchingPolicy")
    return SwitchingPolicy(value, (value.__doc__ or "").strip().partition("\n")[0])


_HERE = "node_agent.apps.dataflow.switching.policies"
POLICIES: Registry[SwitchingPolicy] = Registry(
    WHAT,
    "rove.switching_policies",
    checked_policy,
    {
        "shortest_path": f"{_HERE}.shortest_path:POLICY",
        "static": f"{_HERE}.static:POLICY",
        "round_robin": f"{_HERE}.round_robin:POLICY",
        "random": f"{_HERE}.uniform:POLICY",
        "weighted": f"{_HERE}.weighted:POLICY",
        "power_of_two": f"{_HERE}.power_of_two:POLICY",
        "backpressure": f"{_HERE}.backpressure:POLICY",
        "adaptive": f"{_HERE}.adaptive:POLICY",
    },
)


def policy_of(name: str) -> SwitchingPolicy:
    """What an agent runs: a user's file is read once in a process, whatever happens to it afterwards."""
    return _of_file(name) if is_reference(name) else POLICIES[name]


@cache
def _of_file(reference: str) -> SwitchingPolicy:
    return POLICIES[reference]


def choose(situation: Situation, memory: Struct | None = None) -> Choice:
    """As the situation's rule says."""
    return decider(policy_of(situation.rule.policy), situation)(situation, memory)


def decider(policy: SwitchingPolicy, situation: Situation) -> Decide:
    """The policy's own function, but whole streams go by Algorithm 1 unless the policy never adapts.

    Where results need several tuples, or tuples of several inputs, these must meet: a stream cannot be
    divided, and all inputs know of nothing in common but the aggregated costs that Algorithm 1 goes by.
    """
    return POLICIES[DEFAULT].decide if situation.whole and policy.adapts else policy.decide
