"""Computes what another policy would have chosen from the costs that a run recorded, beside the actual
choices.

Every recorded decision is made again, in order, with what was known then and with the other policy's own
earlier choices. Costs and queues stay as recorded: the record does not show how other choices would have
changed them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.dataflow.model.decision import Situation, Threshold
from node_agent.apps.dataflow.switching.chooser import Chooser
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.extensions.failures import Failure, Failures
from node_agent.extensions.files import short_name
from orchestrator.apps.dataflow.decisions.history import History, Recorded, Series
from orchestrator.apps.dataflow.decisions.reasons import situation_of

Shares = Mapping[str, float]
"""Each replica's share of the stream; empty: no route."""


class Course(Struct, frozen=True):
    """Sums up a series of choices. ``mean_cost`` and ``regret`` (cost above the cheapest candidate) cover the
    time with a route.

    ``no_route_s`` includes the time in which the chosen replica could not be reached.
    """

    switches: int
    no_route_s: float
    mean_cost: float | None
    regret: float | None
    seconds: dict[str, float]


class Compared(Struct, frozen=True):
    """One replica's choices for one downstream operator; ``agreement`` is a share of the time."""

    replica: str
    downstream: str
    decisions: int
    run: Course
    replayed: Course
    agreement: float


class Replay(Struct, frozen=True):
    """``run_policies`` and ``run_thresholds`` are those of the run. ``threshold``: None means that of the
    run.

    ``failed``: decisions in which the policy failed and shortest_path chose instead.
    """

    run: str
    policy: str
    threshold: str | None
    run_policies: tuple[str, ...]
    run_thresholds: tuple[str, ...]
    compared: tuple[Compared, ...]
    failed: tuple[Failure, ...] = ()


class _Slice(NamedTuple):
    """The state between one decision and the next."""

    seconds: float
    situation: Situation
    shares: Shares
    to: str | None
    restarted: bool


def replay(history: History, policy: str, threshold: Threshold | None = None) -> Replay:
    """Replays the run.
    ``policy``: a registered one, or an absolute path (``/home/me/my_policy.py:decide``).
    """
    failures = Failures()
    chooser = Chooser(policy, failures, POLICIES[policy])  # a user's file is loaded in its current version
    compared = tuple(_compared(history, series, policy, threshold, chooser) for series in history.series)
    recorded = [each.decision for series in history.series for each in series]
    return Replay(
        run=history.run,
        policy=short_name(policy),
        threshold=None if threshold is None else str(threshold),
        run_policies=tuple(dict.fromkeys(d.policy for d in recorded)),
        run_thresholds=tuple(dict.fromkeys(str(Threshold(d.threshold, d.relative)) for d in recorded)),
        compared=compared,
        failed=tuple(failures),
    )


def _compared(
    history: History, series: Series, policy: str, threshold: Threshold | None, chooser: Chooser
) -> Compared:
    ends = [*(following.t_ns for following in series[1:]), max(history.end_ns, series[-1].t_ns)]
    as_run = list(_as_run(series, ends))
    again = list(_again(series, ends, policy, threshold, chooser))
    total = sum(each.seconds for each in as_run)
    agreed = sum(a.seconds * _overlap(a.shares, b.shares) for a, b in zip(as_run, again, strict=True))
    decision = series[0].decision
    return Compared(
        replica=decision.replica,
        downstream=decision.downstream,
        decisions=len(series),
        run=_course(as_run),
        replayed=_course(again),
        agreement=agreed / total if total > 0 else 1.0,
    )


def _as_run(series: Series, ends: Sequence[int]) -> Iterator[_Slice]:
    for index, (recorded, end_ns) in enumerate(zip(series, ends, strict=True)):
        decision = recorded.decision
        shares = decision.shares or ({decision.new: 1.0} if decision.new is not None else {})
        found = situation_of(decision, recorded.t_ns)
        yield _Slice(_length(recorded, end_ns), found, shares, decision.new, _restarts(series, index))


def _again(
    series: Series, ends: Sequence[int], policy: str, threshold: Threshold | None, chooser: Chooser
) -> Iterator[_Slice]:
    current: str | None = None
    memory: Struct | None = None
    for index, (recorded, end_ns) in enumerate(zip(series, ends, strict=True)):
        if restarted := _restarts(series, index):
            current, memory = None, None
        as_it_was = situation_of(recorded.decision, recorded.t_ns)
        rule = replace(as_it_was.rule, policy=policy, threshold=threshold or as_it_was.rule.threshold)
        # A choice that several inputs share was not made by this replica alone: it stays as it was.
        in_use = as_it_was.current if as_it_was.shared else current
        found = replace(as_it_was, rule=rule, current=in_use)
        hop, _, memory = chooser.choose(found, memory).choice
        current = hop.to if hop else None
        shares = dict(hop.shares) or {hop.to: 1.0} if hop else {}
        yield _Slice(_length(recorded, end_ns), found, shares, current, restarted)


def _course(slices: Sequence[_Slice]) -> Course:
    seconds: defaultdict[str, float] = defaultdict(float)
    switches, used = 0, None
    routed_s = paid = best_paid = unrouted_s = 0.0
    for each in slices:
        used = None if each.restarted else used
        if each.to is not None:
            switches += used is not None and each.to != used
            used = each.to
        costs = each.situation.costs()
        cheapest = min(costs.values(), default=inf)
        unrouted_s += 0.0 if each.shares else each.seconds
        for to, share in each.shares.items():
            part_s = each.seconds * share
            seconds[to] += part_s
            if to not in costs:
                unrouted_s += part_s
                continue
            routed_s += part_s
            paid += costs[to] * part_s
            best_paid += cheapest * part_s
    return Course(
        switches=switches,
        no_route_s=unrouted_s,
        mean_cost=paid / routed_s if routed_s > 0 else None,
        regret=(paid - best_paid) / routed_s if routed_s > 0 else None,
        seconds=dict(sorted(seconds.items())),
    )


def _overlap(one: Shares, other: Shares) -> float:
    """Returns the share of the stream that goes the same way; two times without a route agree."""
    if not one and not other:
        return 1.0
    return sum(min(share, other.get(to, 0.0)) for to, share in one.items())


def _restarts(series: Series, index: int) -> bool:
    return index > 0 and series[index].boot != series[index - 1].boot


def _length(recorded: Recorded, end_ns: int) -> float:
    return max(0, end_ns - recorded.t_ns) / 1e9
