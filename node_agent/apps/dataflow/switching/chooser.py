"""Applies a rule's policy. If a policy of others fails, Algorithm 1 decides instead."""

from math import isfinite
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Candidate, Rule, Situation
from node_agent.apps.dataflow.switching.policy import (
    DEFAULT,
    POLICIES,
    WHAT,
    SwitchingPolicy,
    decider,
    policy_of,
)
from node_agent.apps.dataflow.switching.route import Choice, Hop
from node_agent.extensions import ExtensionError
from node_agent.extensions.failures import Failures
from node_agent.extensions.files import short_name
from node_agent.extensions.guard import Failed, Foreign, Guard, guarded

_ROUNDING = 1e-6


class Chosen(NamedTuple):
    """``policy``: the name of the policy that chose, as it is recorded."""

    choice: Choice
    policy: str


class Chooser:
    """``name``: of a registered policy or of a user's file. ``policy``: the policy itself, if it is known.

    Raises ExtensionError if there is no such policy.
    """

    def __init__(
        self,
        name: str = DEFAULT,
        failures: Failures | None = None,
        policy: SwitchingPolicy | None = None,
    ) -> None:
        self.policy = policy or policy_of(name)
        self._name = short_name(name)
        foreign = None if POLICIES.is_builtin(name) else Foreign.of(WHAT, self._name, self.policy.decide)
        self._guard = Guard(foreign, failures or Failures()) if foreign is not None else None

    def choose(self, situation: Situation, memory: Struct | None = None) -> Chosen:
        """Returns the policy's choice, or Algorithm 1's if the policy fails."""
        decide = decider(self.policy, situation)
        if self._guard is None or decide is not self.policy.decide:
            return Chosen(decide(situation, memory), self._name)
        return self._guard.call(
            lambda: Chosen(checked_choice(decide(situation, memory), situation), self._name),
            # The failed policy gets its memory back at its next decision.
            lambda: Chosen(POLICIES[DEFAULT].decide(situation, None)._replace(memory=memory), DEFAULT),
        )


def checked_choice(found: object, situation: Situation) -> Choice:
    """Returns ``found`` as a Choice. Raises ExtensionError if it cannot be followed."""
    if not isinstance(found, Choice):
        raise ExtensionError(f"it returns {type(found).__name__}, not a Choice")
    if found.needed is not None:
        _check_number(found.needed, "needed")
    if found.memory is not None and not isinstance(found.memory, Struct):
        raise ExtensionError(f"its memory is {type(found.memory).__name__}, not a msgspec.Struct")
    if found.hop is not None:
        _check_hop(found.hop, [candidate.to for candidate in situation.candidates])
    return found


def _check_hop(hop: object, candidates: list[str]) -> None:
    if not isinstance(hop, Hop):
        raise ExtensionError(f"the hop of its Choice is {type(hop).__name__}, not a Hop")
    if not isinstance(hop.shares, tuple) or not all(isinstance(s, tuple) and len(s) == 2 for s in hop.shares):
        raise ExtensionError("shares of a Hop are pairs of a replica and its share")
    for replica in (hop.to, *(replica for replica, _ in hop.shares)):
        if replica not in candidates:
            raise ExtensionError(f"it chooses {str(replica)[:40]!r}, which is no candidate")
    if hop.cost is not None:
        _check_number(hop.cost, "the cost of its Hop")
    if hop.seed is not None and not isinstance(hop.seed, int):
        raise ExtensionError(f"the seed of its Hop is {type(hop.seed).__name__}, not a whole number")
    for _, share in hop.shares:
        _check_number(share, "a share of its Hop")
    if hop.shares and abs(sum(share for _, share in hop.shares) - 1) > _ROUNDING:
        raise ExtensionError("the shares of its Hop do not add up to 1")
    if hop.shares and hop.to not in dict(hop.shares):
        raise ExtensionError(f"its Hop leads to {hop.to}, which has no share")


def _check_number(number: object, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or number < 0:
        raise ExtensionError(f"{what} is {str(number)[:40]}, not a number of at least 0")


_RULE = Rule()
_NEAR = Candidate("operator/0", link=1.0, path=2.0, aggregate=4.0, queue=3, apart=("operator/1",))
_FAR = Candidate("operator/1", link=1.5, path=3.5, aggregate=6.0, apart=("operator/0",))
_LOST = Candidate("operator/2")
SAMPLES = (
    Situation((_NEAR, _FAR, _LOST), None, _RULE, queued=5, now_ns=1_000_000_000),
    Situation((_LOST, _FAR), "operator/2", _RULE, now_ns=3_000_000_000),
    Situation((_NEAR, _FAR), "operator/1", _RULE, now_ns=5_000_000_000, shared=True),
    Situation((_LOST,), "operator/1", _RULE, now_ns=7_000_000_000),
)
"""What a policy is tried on: a first choice, a lost replica, a replica in use, no replica in reach."""


def try_policy(name: str, policy: SwitchingPolicy) -> None:
    """Raises ExtensionError if the policy cannot choose in ``SAMPLES``."""
    foreign = Foreign.of(WHAT, short_name(name), policy.decide)
    memory: Struct | None = None
    for situation in SAMPLES:
        try:
            found = guarded(
                foreign,
                lambda s=situation, m=memory: checked_choice(policy.decide(s, m), s),  # type: ignore[misc]
            )
        except Failed as failed:
            raise ExtensionError(str(failed)) from failed
        memory = found.memory
