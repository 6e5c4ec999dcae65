"""Finds the next migration of a plan (Alg. 4.4, ``find_next_target``)."""

from typing import NamedTuple

from node_agent.migration.plan import Plan


class Move(NamedTuple):
    """``begin_at``: when copying begins. ``deadline``: when the target should have taken over; it has passed
    if the move is late."""

    target: str
    begin_at: float
    deadline: float


def next_move(plan: Plan, host: str, now: float) -> Move | None:
    """Returns where a certain plan leads next from ``host``; None if the operator is to stay."""
    hosts, times = plan.hosts(), plan.steps.times
    for step in range(plan.steps.index(now), len(hosts)):
        if hosts[step] != host:
            copy_at = plan.stages[step][0].copy_at
            return Move(hosts[step], times[step] if copy_at is None else copy_at, times[step])
    return None
