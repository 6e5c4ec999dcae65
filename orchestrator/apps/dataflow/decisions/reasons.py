"""Explains in a sentence or two why a decision came out as it did."""

from node_agent.apps.dataflow.events import RouteDecision
from node_agent.apps.dataflow.model.decision import Candidate, Rule, Situation, Threshold
from node_agent.apps.dataflow.switching.policy import DEFAULT, POLICIES, WHAT, SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided, shown, usable
from node_agent.apps.dataflow.switching.route import Choice, Hop
from node_agent.extensions import ExtensionError
from node_agent.extensions.guard import Failed, Foreign, guarded


def situation_of(decision: RouteDecision, t_ns: int) -> Situation:
    """Returns the situation that the decision was based on."""
    threshold = Threshold(decision.threshold, decision.relative)
    return Situation(
        candidates=decision.candidates,
        current=decision.old,
        rule=Rule(decision.policy, threshold, decision.exponent, decision.draw_seed),
        queued=decision.queued,
        now_ns=t_ns,
        shared=decision.shared,
        whole=decision.whole,
    )


def summary(candidates: tuple[Candidate, ...], shared: bool) -> str:
    """Lists the cost of each candidate: ``detect/0 4.00, detect/1 –``."""
    return ", ".join(f"{c.to} {shown(c.aggregate if shared else c.path)}" for c in candidates)


def reason(decision: RouteDecision) -> str:
    """Says why this replica was chosen, or none."""
    try:
        text = _reason(decision)
    except (KeyError, ValueError, ArithmeticError):  # a record that no policy can have made
        chosen = decision.new or "none"
        return f"The policy {decision.policy} chose {chosen}, which what is recorded does not explain."
    # Do not change the case of replicas' names.
    return text if text.startswith(f"{decision.downstream}/") else text[:1].upper() + text[1:]


def _reason(decision: RouteDecision) -> str:
    situation, choice = situation_of(decision, 0), choice_of(decision)
    policy = _known(decision.policy)
    if policy is not None and not policy.adapts:
        return _by_policy(decision.policy, policy, situation, choice)
    if choice.hop is None:
        return _why_none(decision, situation, policy)
    if situation.whole:
        return _by_policy(DEFAULT, POLICIES[DEFAULT], situation, choice)
    if policy is None:
        return _by_default(decision.policy, situation, choice)
    return _by_policy(decision.policy, policy, situation, choice)


def choice_of(decision: RouteDecision) -> Choice:
    """Returns the choice, as far as it is recorded."""
    hop = Hop(decision.new, None, tuple(decision.shares.items())) if decision.new is not None else None
    return Choice(hop, decision.needed)


def _known(name: str) -> SwitchingPolicy | None:
    """Returns the policy; None for one in a user's file, because reading records must not run code."""
    if name not in POLICIES:
        return None
    try:
        return POLICIES[name]
    except ExtensionError:  # its package cannot be loaded here
        return None


def _by_policy(name: str, policy: SwitchingPolicy, situation: Situation, choice: Choice) -> str:
    explain = policy.reason
    if explain is None:
        return _by_default(name, situation, choice)
    if POLICIES.is_builtin(name):
        return explain(situation, choice)
    try:
        return str(guarded(Foreign.of(WHAT, name, explain), lambda: explain(situation, choice)))
    except Failed:
        return _by_default(name, situation, choice)


def _by_default(name: str, situation: Situation, choice: Choice) -> str:
    chosen = choice.hop.to if choice.hop is not None else "none"
    return divided(f"The policy {name} chose {chosen} from {usable(situation)}", choice)


def _why_none(decision: RouteDecision, situation: Situation, policy: SwitchingPolicy | None) -> str:
    if not situation.costs():
        return f"No replica of {decision.downstream} had a way to the sinks: the stream waits for one."
    if decision.shared:
        return "The replica that the inputs agree on could not be reached from here: the stream waits."
    if policy is not None and policy.queues:
        more = f"more tuples waiting than the {decision.queued} here"
        return f"Every usable replica had {more}: the stream waits."
    return f"The policy {decision.policy} chose none of the usable replicas: the stream waits."
