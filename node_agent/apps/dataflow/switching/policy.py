"""Switching policies: choose the replica that a replica's output goes to (the paper, Algorithm 1).

A policy is a pure function of the situation and its own memory, so every decision can be tested alone and
replayed from its record. ``SwitchingPolicy`` declares the rest of what Rove must know about it.
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
Explain = Callable[[Situation, Choice], str]
DEFAULT = "shortest_path"
WHAT = "switching policy"


@dataclass(frozen=True)
class SwitchingPolicy:
    """A way to choose among the replicas of a downstream operator.

        def cheapest_link(situation: Situation, memory: Struct | None) -> Choice: ...

        POLICY = SwitchingPolicy(cheapest_link, "the replica that is nearest, whatever lies behind it")

    ``several``: it may divide a stream among replicas; then all senders of an operator with windows or joins
    agree on one replica of it. ``queues``: it uses how many tuples wait at replicas, so replicas report this.
    ``adapts``: it takes the network into account at all. ``reason`` explains a choice in words.
    """

    decide: Decide
    description: str = ""
    several: bool = True
    queues: bool = False
    adapts: bool = True
    reason: Explain | None = None


def checked_policy(name: str, value: object) -> SwitchingPolicy:
    """Returns a SwitchingPolicy as it is, and makes one of a function that decides. Raises ExtensionError."""
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
    },
)


def policy_of(name: str) -> SwitchingPolicy:
    """Returns the policy that an agent runs. Reads a user's file once in a process, even if it changes
    later.
    """
    return _of_file(name) if is_reference(name) else POLICIES[name]


@cache
def _of_file(reference: str) -> SwitchingPolicy:
    return POLICIES[reference]


def choose(situation: Situation, memory: Struct | None = None) -> Choice:
    """Chooses as the situation's rule says."""
    return decider(policy_of(situation.rule.policy), situation)(situation, memory)


def decider(policy: SwitchingPolicy, situation: Situation) -> Decide:
    """Returns the policy's own function, or Algorithm 1 for whole streams, unless the policy never adapts.

    If a result needs several tuples, or tuples of several inputs, these must meet at one replica. So the
    stream cannot be divided, and the inputs have only the aggregated costs in common, which Algorithm 1 uses.
    """
    return POLICIES[DEFAULT].decide if situation.whole and policy.adapts else policy.decide
