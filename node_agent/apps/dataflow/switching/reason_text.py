"""Phrases that explain a policy's choice; ``rove explain`` puts them together."""

from math import isfinite

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.route import Choice

_SUMMED = " Costs are summed over all inputs, so that these choose the same replica."


def shown(cost: float | None) -> str:
    return "–" if cost is None or not isfinite(cost) else f"{cost:.2f}"


def usable(situation: Situation) -> str:
    """Returns ``the 3 replicas with a way to the sinks``."""
    many = len(situation.costs())
    among = "the only replica" if many == 1 else f"the {many} replicas"
    return f"{among} with a way to the sinks"


def divided(text: str, choice: Choice) -> str:
    """Adds each replica's share to ``text`` if there are several."""
    shares = _shares(choice)
    return f"{text}: {shares}." if shares else f"{text}."


def by_cost(situation: Situation, choice: Choice) -> str:
    """Explains why the costs led to this replica."""
    if choice.hop is None:
        return "no replica could be used."
    summed = _SUMMED if situation.shared else ""
    shares = _shares(choice)
    parallel = f" Network paths that do not interfere are used at once: {shares}." if shares else ""
    return f"{_by_cost(situation, choice, choice.hop.to)}{summed}{parallel}"


def _by_cost(situation: Situation, choice: Choice, new: str) -> str:
    costs, old = situation.costs(), situation.current
    cost = costs[new]
    others = sorted((to for to in costs if to != new), key=lambda to: costs[to])
    if old is None or old not in costs:
        lost = f"{old} {_gone(situation, old)}; " if old is not None else ""
        return f"{lost}{new} was {_best(cost, others, costs)}."
    if new != old:
        return _switched(situation, choice, old, new)
    if not others or costs[others[0]] >= cost:
        return f"{new} was still {_best(cost, others, costs)}."
    best = others[0]
    compared = f"{shown(costs[best])} against {shown(cost)}"
    needed = f"a switch had to gain more than {_needed(situation, choice)}"
    return f"{best} was not cheaper by enough ({compared}): {needed}."


def _gone(situation: Situation, old: str) -> str:
    candidate = situation.candidate(old)
    if candidate is not None and candidate.silent:
        return "did not answer any more"
    return "could no longer be reached"


def _best(cost: float, others: list[str], costs: dict[str, float]) -> str:
    if not others:
        return f"the only one with a way to the sinks ({shown(cost)})"
    following = costs[others[0]]
    rest = f"next was {others[0]} ({shown(following)})" if following > cost else f"{others[0]} cost as much"
    return f"the cheapest way to the sinks ({shown(cost)}); {rest}"


def _switched(situation: Situation, choice: Choice, old: str, new: str) -> str:
    costs = situation.costs()
    needed = f"it had to be by more than {_needed(situation, choice)}"
    gain = f"{shown(costs[old] - costs[new])} ({shown(costs[new])} against {shown(costs[old])})"
    return f"{new} was cheaper than {old} by {gain}; {needed}."


def _needed(situation: Situation, choice: Choice) -> str:
    threshold = situation.rule.threshold
    if not threshold.relative:
        return shown(choice.needed)
    return f"{shown(choice.needed)} ({threshold} of what was paid)"


def _shares(choice: Choice) -> str:
    shares = choice.hop.shares if choice.hop else ()
    return ", ".join(f"{to} {share:.0%}" for to, share in shares)
