"""Why a decision came out as it did, in a sentence or two."""

from math import isfinite

from node_agent.apps.dataflow.events import RouteDecision
from node_agent.apps.dataflow.model.decision import Candidate, Rule, Situation, Threshold

_SUMMED = " Costs are summed over all inputs, so that these choose the same replica."
_BY_TRENDS = "by the trends of their costs, "


def situation_of(decision: RouteDecision, t_ns: int) -> Situation:
    """What was decided on, as it was."""
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


def shown(cost: float | None) -> str:
    return "–" if cost is None or not isfinite(cost) else f"{cost:.2f}"


def summary(candidates: tuple[Candidate, ...], shared: bool) -> str:
    """``detect/0 4.00, detect/1 –``: what each cost."""
    return ", ".join(f"{c.to} {shown(c.aggregate if shared else c.path)}" for c in candidates)


def reason(decision: RouteDecision) -> str:
    """Why this replica was chosen, or none."""
    text = _reason(decision)
    # Replicas keep their names as they are.
    return text if text.startswith(f"{decision.downstream}/") else text[:1].upper() + text[1:]


def _reason(decision: RouteDecision) -> str:
    if decision.policy == "static":
        return "The policy is static: the first replica, whatever it costs."
    costs = situation_of(decision, 0).costs()
    if decision.new is None:
        return _why_none(decision, costs)
    if decision.whole or decision.policy in ("shortest_path", "adaptive"):
        summed = _SUMMED if decision.shared else ""
        return f"{_by_cost(decision, costs, decision.new)}{summed}{_parallel(decision)}"
    return _by_rule(decision, len(costs))


def _why_none(decision: RouteDecision, costs: dict[str, float]) -> str:
    if not costs:
        return f"No replica of {decision.downstream} had a way to the sinks: the stream waits for one."
    if decision.shared:
        return "The replica that the inputs agree on could not be reached from here: the stream waits."
    return f"Every usable replica had more tuples waiting than the {decision.queued} here: the stream waits."


def _by_cost(decision: RouteDecision, costs: dict[str, float], new: str) -> str:
    old, cost = decision.old, costs[new]
    others = sorted((to for to in costs if to != new), key=lambda to: costs[to])
    if old is None or old not in costs:
        lost = f"{old} {_gone(decision, old)}; " if old is not None else ""
        return f"{lost}{new} was {_best(cost, others, costs)}."
    if new != old:
        return _switched(decision, costs, old, new)
    if not others or costs[others[0]] >= cost:
        return f"{new} was still {_best(cost, others, costs)}."
    trends = _BY_TRENDS if decision.policy == "adaptive" else ""
    best = others[0]
    compared = f"{shown(costs[best])} against {shown(cost)}"
    needed = f"a switch had to gain more than {_needed(decision)}"
    return f"{trends}{best} was not cheaper by enough ({compared}): {needed}."


def _gone(decision: RouteDecision, old: str) -> str:
    if any(candidate.to == old and candidate.silent for candidate in decision.candidates):
        return "did not answer any more"
    return "could no longer be reached"


def _best(cost: float, others: list[str], costs: dict[str, float]) -> str:
    if not others:
        return f"the only one with a way to the sinks ({shown(cost)})"
    following = costs[others[0]]
    rest = f"next was {others[0]} ({shown(following)})" if following > cost else f"{others[0]} cost as much"
    return f"the cheapest way to the sinks ({shown(cost)}); {rest}"


def _switched(decision: RouteDecision, costs: dict[str, float], old: str, new: str) -> str:
    needed = f"it had to be by more than {_needed(decision)}"
    if decision.policy == "adaptive" and not decision.whole:
        compared = f"now {shown(costs[new])} against {shown(costs[old])}"
        return f"{_BY_TRENDS}{new} promised to be cheaper than {old} ({compared}); {needed}."
    gain = f"{shown(costs[old] - costs[new])} ({shown(costs[new])} against {shown(costs[old])})"
    return f"{new} was cheaper than {old} by {gain}; {needed}."


def _needed(decision: RouteDecision) -> str:
    own_margin = decision.policy == "adaptive" and not decision.whole
    if not decision.relative or own_margin:
        return shown(decision.needed)
    share = Threshold(decision.threshold, decision.relative)
    return f"{shown(decision.needed)} ({share} of what was paid)"


def _parallel(decision: RouteDecision) -> str:
    if not decision.shares:
        return ""
    return f" Network paths that do not interfere are used at once: {_shares(decision)}."


def _by_rule(decision: RouteDecision, usable: int) -> str:
    among = "the only replica" if usable == 1 else f"the {usable} replicas"
    among += " with a way to the sinks"
    power = f"{decision.exponent:g}"
    text = {
        "round_robin": f"Round robin over {among}",
        "random": f"Drawn for each tuple, with equal chances, from {among}",
        "weighted": f"Drawn for each tuple, by 1/cost^{power}, from {among}",
        "power_of_two": f"For each tuple two are drawn from {among}, and the shorter queue is taken",
        "backpressure": (
            f"{decision.new} had the greatest (tuples here + 1 − tuples there)/link^{power}, "
            f"with {decision.queued} here"
        ),
    }[decision.policy]
    return f"{text}: {_shares(decision)}." if decision.shares else f"{text}."


def _shares(decision: RouteDecision) -> str:
    return ", ".join(f"{to} {share:.0%}" for to, share in decision.shares.items())
