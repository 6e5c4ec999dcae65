"""Multi-level push-pull conversion on one tree, in the paper's two phases (section IV-B).

Phase 1 turns pushes into single-target pulls, in the order of ``CDR = cost reduction / delay increase``, as
long as the delay tolerance holds. Phase 2 lets remaining pushes join the pull of a sibling (multi-target), in
the order of their cost reduction.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from orchestrator.apps.comet.planning.ced_tree import CedTree, Edge, Junction
from orchestrator.apps.comet.planning.draft import Draft
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, Steps, in_order

SLACK = 1e-9
"""Delays this much above the tolerance come from rounding."""
GAIN = 1e-12
"""A change must save more than this share of the cost."""


class Order(Enum):
    """By what phase 1 chooses the next conversion.

    The paper's CDR divides by the "delay increase caused by converting" a link. ``CDR`` reads this as what
    the whole plan becomes later, ``CDR_OF_LINK`` as what request and reply take on that link.
    """

    CDR = "cost reduction per delay increase"
    CDR_OF_LINK = "cost reduction per delay of the link's request and reply"
    COST = "cost reduction alone"


@dataclass(frozen=True)
class Change:
    """New steps for a junction. ``round_trip``: of the link that becomes a single-target pull."""

    node: str
    steps: Steps
    saving: float
    round_trip: float = 0.0

    def rank(self, order: Order, added: float) -> float:
        """``added``: by how much the whole plan becomes later."""
        if order is Order.COST:
            return self.saving
        delay = self.round_trip if order is Order.CDR_OF_LINK else added
        return self.saving / delay if delay > SLACK else math.inf


def convert(
    estimator: Estimator,
    tree: CedTree,
    order: Order = Order.CDR,
    *,
    second_phase: bool = True,
    stops: bool = False,
) -> Plan | None:
    """Returns None if pushing everything is too late already. ``stops``: see ``single_pulls``."""
    draft = Draft(estimator, tree)
    if draft.delay > estimator.task.tolerance + SLACK:
        return None
    single_pulls(draft, order, stops=stops)
    pull_absent(draft)
    if second_phase:
        multi_pulls(draft)
    return draft.finished()


def single_pulls(
    draft: Draft,
    order: Order = Order.CDR,
    kept_pushed: frozenset[tuple[str, str]] = frozenset(),
    *,
    stops: bool = False,
) -> None:
    """Phase 1. ``kept_pushed``: nodes of junctions and inputs that are left alone.

    The paper converts links in order "until a stage where any additional conversion would cause violation" of
    the tolerance. ``stops`` reads this as: until the next one in order would. Else those that would not fit
    are passed over.
    """
    tolerance = draft.estimator.task.tolerance + SLACK
    least = GAIN * draft.cost

    def found(junction: Junction) -> list[Change]:
        changes = (
            Change(junction.node, steps, draft.saving(junction.node, steps), edge.request_delay + edge.delay)
            for edge, steps in _single_conversions(draft, junction)
            if (junction.node, edge.name) not in kept_pushed
        )
        return [change for change in changes if change.saving > least]

    candidates = {junction.node: found(junction) for junction in draft.tree.junctions}
    while True:
        now = draft.delay
        best: tuple[float, float, Change, bool] | None = None
        for node, changes in candidates.items():
            feasible = []
            for change in changes:
                delay = draft.delay_with(node, change.steps)
                fits = delay <= tolerance
                if not fits and not stops:
                    continue  # delays only grow: it will not fit later either
                feasible.append(change)
                rank = change.rank(order, delay - now)
                if best is None or (rank, change.saving) > best[:2]:
                    best = (rank, change.saving, change, fits)
            candidates[node] = feasible
        if best is None or not best[3]:
            return
        change = best[2]
        draft.change(change.node, change.steps)
        candidates[change.node] = found(draft.junctions[change.node])


def _single_conversions(draft: Draft, junction: Junction) -> Iterator[tuple[Edge, Steps]]:
    """Pulls are in the order of increasing frequency, so that the hardest condition is checked first."""
    pushed, *pulled = draft.steps[junction.node]
    if len(pushed) < 2:
        return
    edges = junction.by_name
    for name in pushed:
        if edges[name].hops and math.isfinite(edges[name].request_delay):
            order = sorted(
                [*pulled, (name,)], key=lambda step: min(_frequency(draft, junction, n) for n in step)
            )
            yield edges[name], in_order([[n for n in pushed if n != name], *order])


def _frequency(draft: Draft, junction: Junction, name: str) -> tuple[float, str]:
    return draft.estimator.frequency(junction.by_name[name]), name


def pull_absent(draft: Draft) -> None:
    """Pulls the events that negations watch where this is cheaper and not too late."""
    for edge in draft.tree.absent:
        cheaper = draft.estimator.absent_cost(edge, True) < draft.estimator.absent_cost(edge, False)
        before = draft.pulled_absent
        if cheaper and edge.hops:
            draft.pulled_absent = before | {edge.name}
            if draft.delay > draft.estimator.task.tolerance + SLACK:
                draft.pulled_absent = before


def multi_pulls(draft: Draft) -> None:
    """Phase 2."""
    _climb(draft, _joining)


def _joining(draft: Draft, junction: Junction) -> Iterator[Steps]:
    pushed, *pulled = draft.steps[junction.node]
    edges = junction.by_name
    for name in pushed if len(pushed) > 1 else ():
        if edges[name].hops and math.isfinite(edges[name].request_delay):
            rest = [other for other in pushed if other != name]
            for place, step in enumerate(pulled):
                yield in_order([rest, *pulled[:place], (*step, name), *pulled[place + 1 :]])


def _climb(draft: Draft, changes: Callable[[Draft, Junction], Iterator[Steps]]) -> None:
    """Applies the change that saves most and fits into the tolerance, as long as there is one."""
    tolerance = draft.estimator.task.tolerance + SLACK
    least = GAIN * draft.cost

    def found(junction: Junction) -> list[Change]:
        all_changes = (
            Change(junction.node, steps, draft.saving(junction.node, steps))
            for steps in changes(draft, junction)
        )
        saving = [change for change in all_changes if change.saving > least]
        return sorted(saving, key=lambda change: (-change.saving, change.steps))

    candidates = {junction.node: found(junction) for junction in draft.tree.junctions}
    while True:
        fitting = []
        for node, listed in candidates.items():
            first = next((c for c in listed if draft.delay_with(node, c.steps) <= tolerance), None)
            if first is not None:
                fitting.append(first)
        if not fitting:
            return
        best = max(fitting, key=lambda change: change.saving)
        draft.change(best.node, best.steps)
        candidates[best.node] = found(draft.junctions[best.node])


def climb_moves(draft: Draft) -> None:
    """Moves single inputs to other steps while this saves cost: also back from pull to push."""
    _climb(draft, _moves)


def _moves(draft: Draft, junction: Junction) -> Iterator[Steps]:
    steps = draft.steps[junction.node]
    edges = junction.by_name
    for place, step in enumerate(steps):
        for name in step:
            rest = [[n for n in other if n != name] for other in steps]
            pullable = bool(edges[name].hops) and math.isfinite(edges[name].request_delay)
            if place:
                yield in_order([[*rest[0], name], *rest[1:]])
            if not pullable or not rest[0]:
                continue
            for other in range(1, len(rest) + 1):
                yield in_order([*rest[:other], [name], *rest[other:]])
                if other < len(rest) and other != place:
                    yield in_order([*rest[:other], [*rest[other], name], *rest[other + 1 :]])
