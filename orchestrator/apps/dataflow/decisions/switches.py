"""Lists the switches of a run: when a replica began to send elsewhere, why, and what the way then carried."""

from collections.abc import Iterator

from msgspec import Struct

from orchestrator.apps.dataflow.decisions.explain import check_replica
from orchestrator.apps.dataflow.decisions.history import History, Recorded, Series
from orchestrator.apps.dataflow.decisions.reasons import reason
from orchestrator.errors import BadInput
from orchestrator.spec.problems import did_you_mean


class Switch(Struct, frozen=True):
    """``old``: None if there was no route, or the agent had just started (``first``). ``until_s``: when the
    next switch came, or the run ended. ``idle``: the longest time in which the new way carried nothing.
    """

    at_s: float
    until_s: float
    replica: str
    node: str
    downstream: str
    old: str | None
    new: str | None
    first: bool
    why: str
    idle: "Idle | None" = None


class Idle(Struct, frozen=True):
    """``had_input``: the sender had input, which a filter or a window may have kept."""

    from_s: float
    until_s: float
    had_input: bool


def switches(history: History, replica: str | None = None, operator: str | None = None) -> list[Switch]:
    """Returns the switches in order of time; of one replica, or of those that have to do with an operator."""
    if replica is not None:
        check_replica(history, replica)
    names = history.plan.query.names()
    if operator is not None and operator not in names:
        hint = did_you_mean(operator, names) or f"it has {', '.join(names)}"
        raise BadInput(f"--operator: the query has no operator {operator!r}: {hint}")
    owners = {each.id: each.operator for each in history.plan.replicas}
    found = []
    for series in history.series:
        decision = series[0].decision
        if replica is not None and decision.replica != replica:
            continue
        if operator is not None and operator not in (owners.get(decision.replica), decision.downstream):
            continue
        found += list(_of(history, series))
    return sorted(found, key=lambda each: each.at_s)


def _of(history: History, series: Series) -> Iterator[Switch]:
    changes = [
        (before, now)
        for before, now in zip((None, *series[:-1]), series, strict=True)
        if before is None or before.boot != now.boot or before.decision.new != now.decision.new
    ]
    ends = [*(now.t_ns for _, now in changes[1:]), max(history.end_ns, series[-1].t_ns)]
    for (before, now), end_ns in zip(changes, ends, strict=True):
        yield _switch(history, before, now, end_ns)


def _switch(history: History, before: Recorded | None, now: Recorded, end_ns: int) -> Switch:
    decision = now.decision
    first = before is None or before.boot != now.boot
    return Switch(
        at_s=history.seconds(now.t_ns),
        until_s=history.seconds(end_ns),
        replica=decision.replica,
        node=now.node,
        downstream=decision.downstream,
        old=None if before is None or first else before.decision.new,
        new=decision.new,
        first=first,
        why=reason(decision),
        idle=_idle(history, now, end_ns),
    )


def _idle(history: History, now: Recorded, end_ns: int) -> Idle | None:
    decision = now.decision
    if decision.new is None:
        return None
    shares = decision.shares or {decision.new: 1.0}
    gap = history.carried.longest_gap(decision.replica, shares, now.t_ns, end_ns)
    if gap is None:
        return None
    return Idle(history.seconds(gap.from_ns), history.seconds(gap.until_ns), gap.had_input)
