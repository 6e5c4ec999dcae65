"""Finds which decision was in force at a given time, which costs it was based on, and how it came about."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Candidate, Threshold
from node_agent.apps.dataflow.model.plan import DeploymentPlan, operator_of
from orchestrator.apps.dataflow.decisions.history import History, Recorded, Series
from orchestrator.apps.dataflow.decisions.reasons import reason
from orchestrator.errors import BadInput
from orchestrator.runs.outages import CRASH, in_words
from orchestrator.spec.problems import did_you_mean


class Switched(Struct, frozen=True):
    """The last change of replica, with all costs then and at the decision before it (if there was one)."""

    at_s: float
    old: str | None
    new: str | None
    why: str
    before_s: float | None
    before: tuple[Candidate, ...]
    after: tuple[Candidate, ...]


class Dead(Struct, frozen=True):
    """The agent was killed after its last decision; ``back_s`` is None if it was not started again."""

    killed_s: float
    back_s: float | None


class InForce(Struct, frozen=True):
    """A fault that was active at the given time."""

    fault: str
    from_s: float
    until_s: float | None


class Explanation(Struct, frozen=True):
    """Times are in seconds since the run's first record; ages in seconds before the decision."""

    replica: str
    node: str
    downstream: str
    decided_s: float
    policy: str
    threshold: str
    needed: float | None
    to: str | None
    shares: dict[str, float]
    since_s: float
    why: str
    candidates: tuple[Candidate, ...]
    shared: bool
    queued: int
    metric: str
    source: str
    cost_age_s: float
    switched: Switched | None
    dead: Dead | None
    idle_s: float | None = None
    """For so long nothing has arrived over the way in use; None: it carries something, or is new."""
    had_input: bool = False
    """Whether its sender had input meanwhile, which a filter or a window may have kept."""


class Situated(NamedTuple):
    """A point in a series: the decision in force, and those before it, newest last."""

    now: Recorded
    earlier: Series


def explain(history: History, at_s: float, replica: str | None = None) -> tuple[Explanation, ...]:
    """Explains the decisions of one replica, or of all replicas that the streams passed at the time, from the
    sources on.
    """
    _check_time(history, at_s)
    at_ns = history.zero_ns + round(at_s * 1e9)
    if replica is not None:
        check_replica(history, replica)
        found = tuple(_of(history, replica, at_ns))
        if not found:
            first = min(s[0].t_ns for s in history.series if s[0].decision.replica == replica)
            raise BadInput(
                f"{replica} had decided nothing by {at_s:g} s: its first decision came at "
                f"{history.seconds(first):.1f} s"
            )
        return found
    found = tuple(_along_the_streams(history, at_ns))
    if not found and not history.plan.moving:
        first = min(series[0].t_ns for series in history.series)
        raise BadInput(
            f"no source had decided anything by {at_s:g} s: the first decision came at "
            f"{history.seconds(first):.1f} s"
        )
    return found


def faults_at(history: History, at_s: float) -> tuple[InForce, ...]:
    at_ns = history.zero_ns + round(at_s * 1e9)
    found = []
    for what, node, from_ns, until_ns, note in history.outages:
        if from_ns <= at_ns and (until_ns is None or at_ns < until_ns):
            text = in_words(what, node, [r.id for r in history.plan.replicas if r.node == node], note)
            found.append(InForce(text, history.seconds(from_ns), _seconds_or_none(history, until_ns)))
    return tuple(found)


def _seconds_or_none(history: History, t_ns: int | None) -> float | None:
    return None if t_ns is None else history.seconds(t_ns)


def _along_the_streams(history: History, at_ns: int) -> Iterator[Explanation]:
    waiting = [r.id for name in history.plan.query.sources() for r in history.plan.of(name)]
    seen: set[str] = set()
    while waiting:
        replica = waiting.pop(0)
        if replica in seen:
            continue
        seen.add(replica)
        waiting += _behind_moving(history.plan, replica)
        for found in _of(history, replica, at_ns):
            yield found
            if found.dead is not None:
                continue
            waiting += list(found.shares) or [to for to in (found.to,) if to is not None]


def _behind_moving(plan: DeploymentPlan, replica: str) -> list[str]:
    """The replicas behind operators that move, of which nobody chooses a replica."""
    query = plan.query
    moving = (name for name in query.downstream(operator_of(replica)) if plan.moves(name))
    return [r.id for name in moving for behind in query.downstream(name) for r in plan.of(behind)]


def _of(history: History, replica: str, at_ns: int) -> Iterator[Explanation]:
    for series in history.series:
        if series[0].decision.replica == replica:
            past = tuple(recorded for recorded in series if recorded.t_ns <= at_ns)
            if past:
                yield _explained(history, Situated(past[-1], past[:-1]), at_ns)


def _explained(history: History, situated: Situated, at_ns: int) -> Explanation:
    now = situated.now
    decision = now.decision
    changed = _last_change((*situated.earlier, now))
    shares = decision.shares or ({decision.new: 1.0} if decision.new is not None else {})
    idle = history.carried.idle_before(decision.replica, shares, changed.now.t_ns, at_ns) if shares else None
    return Explanation(
        replica=decision.replica,
        node=now.node,
        downstream=decision.downstream,
        decided_s=history.seconds(now.t_ns),
        policy=decision.policy,
        threshold=str(Threshold(decision.threshold, decision.relative)),
        needed=decision.needed,
        to=decision.new,
        shares=decision.shares,
        since_s=history.seconds(changed.now.t_ns),
        why=reason(decision),
        candidates=decision.candidates,
        shared=decision.shared,
        queued=decision.queued,
        metric=decision.metric,
        source=decision.source,
        cost_age_s=(now.t_ns - decision.taken_ns) / 1e9,
        switched=_switched(history, changed),
        dead=_dead(history, now, at_ns),
        idle_s=None if idle is None else idle.seconds,
        had_input=idle is not None and idle.had_input,
    )


def _dead(history: History, last: Recorded, at_ns: int) -> Dead | None:
    """Returns when the agent was killed, if it was since its last decision: a restarted agent forgets its
    decisions.
    """
    killed = [o for o in history.outages if (o.what, o.node) == (CRASH, last.node)]
    since = [outage for outage in killed if last.t_ns <= outage.from_ns <= at_ns]
    if not since:
        return None
    return Dead(history.seconds(since[-1].from_ns), _seconds_or_none(history, since[-1].until_ns))


def _last_change(past: Series) -> Situated:
    """Finds since when the present choice has been made without a break; a restart counts as a break."""
    index = len(past) - 1
    while index > 0:
        here, before = past[index], past[index - 1]
        if before.boot != here.boot or before.decision.new != here.decision.new:
            break
        index -= 1
    return Situated(past[index], past[:index])


def _switched(history: History, changed: Situated) -> Switched | None:
    if not changed.earlier or changed.earlier[-1].boot != changed.now.boot:
        return None
    now, before = changed.now, changed.earlier[-1]
    return Switched(
        at_s=history.seconds(now.t_ns),
        old=before.decision.new,
        new=now.decision.new,
        why=reason(now.decision),
        before_s=history.seconds(before.t_ns),
        before=before.decision.candidates,
        after=now.decision.candidates,
    )


def _check_time(history: History, at_s: float) -> None:
    end_s = history.seconds(history.end_ns)
    if at_s > end_s:
        raise BadInput(f"{at_s:g} s is outside the run, which has records from 0 s to {end_s:.1f} s so far")


def check_replica(history: History, replica: str) -> None:
    deciding = list(dict.fromkeys(series[0].decision.replica for series in history.series))
    if replica in deciding:
        return
    planned = {r.id: r.operator for r in history.plan.replicas}
    if replica in planned:
        is_sink = planned[replica] in history.plan.query.sinks()
        why = "is a sink: it sends to nobody" if is_sink else "has no decisions recorded"
        raise BadInput(f"{replica} {why}")
    hint = did_you_mean(replica, deciding) or f"there are {', '.join(deciding)}"
    raise BadInput(f"run {history.run} has no replica {replica!r}: {hint}")
