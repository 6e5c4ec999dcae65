"""Holds estimated costs and promised delays against plans that are carried out message by message.

On the networks of the figures, for Comet's plan and ours and several tolerances. ``max_relative_error``: of
the cost; ``late``: detections later than promised; ``missed``, ``invented``: detections that differ from
those in the events that occurred. ``chance``: the standard error of the counted cost. The run is the
simulation in ``benchmarks/comet/simulation.py``; with ``--machines`` the state machines of agents.

The figures' pattern of eight events within a minute is met once in days. So each network is planned and
carried out twice: with that window, and with one of three minutes (``--windows``), with which it is met about
every two minutes and delays can be held against promises.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from statistics import mean, stdev

from benchmarks.comet.carried_out import carry_out
from benchmarks.comet.networks import (
    MINUTE,
    Network,
    figure4,
    figure5,
    figure6,
    figure8,
    figure9,
)
from benchmarks.comet.planned import prepared
from benchmarks.comet.simulation import Outcome, Store, simulate
from benchmarks.radio.report import Row, show
from node_agent.apps.comet.conjuncts import matches_with
from node_agent.apps.comet.events import Detection, detection_of
from node_agent.apps.comet.patterns import And
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.estimator import Plan
from orchestrator.apps.comet.planning.planners import comet
from orchestrator.apps.comet.planning.problem import World

TOLERANCES_MIN = (30, 100)
WINDOWS_MIN = (1.0, 3.0)
"""The figures' own, and one with which their pattern is met often."""
RUN_S = 5e5
FEWEST_RUNS, MOST_RUNS = 4, 40
EXACT_ENOUGH = 0.025
"""Runs are repeated until the standard error of their mean cost is at most this share of it."""


def networks() -> list[Network]:
    six = [figure6(uniform_cost=uniform) for uniform in (True, False)]
    return [figure4(), figure5(), *six, figure8(), figure9(4)]


def with_window(network: Network, minutes: float) -> Network:
    pattern = network.request.pattern
    assert isinstance(pattern, And), "the figures detect a conjunction"
    return replace(network, request=replace(network.request, pattern=And(pattern.parts, minutes * MINUTE)))


Carry = Callable[[Plan, World, int, float], Outcome]


def row(
    network: Network,
    tolerance_min: float,
    name: str,
    plan: Plan,
    most_runs: int,
    carry: Carry = simulate,
    seconds: float = RUN_S,
) -> Row:
    counted: list[float] = []
    detections = late = missed = invented = 0
    worst = 0.0
    while len(counted) < FEWEST_RUNS or (len(counted) < most_runs and _chance(counted) > EXACT_ENOUGH):
        outcome = carry(plan, network.world, len(counted), seconds)
        found, true = set(outcome.delays), occurred(plan, outcome)
        counted.append(outcome.cost)
        detections += len(found)
        late += sum(delay > plan.delay for delay in outcome.delays.values())
        missed += len(true - found)
        invented += len(found - true)
        worst = max(worst, outcome.worst_delay)
    return {
        "network": network.name,
        "tolerance_min": tolerance_min,
        "planner": name,
        "estimated": plan.cost * MINUTE,
        "counted": mean(counted) * MINUTE,
        "error": plan.cost / mean(counted) - 1,
        "chance": _chance(counted),
        "runs": len(counted),
        "promised_min": plan.delay / MINUTE,
        "worst_min": worst / MINUTE,
        "detections": detections,
        "late": late,
        "missed": missed,
        "invented": invented,
    }


def _chance(counted: list[float]) -> float:
    """The standard error of the mean, as a share of it."""
    return stdev(counted) / math.sqrt(len(counted)) / mean(counted)


def occurred(plan: Plan, outcome: Outcome) -> set[Detection]:
    """All detections, found by looking around each instance of the rarest event."""
    conjunct = plan.tree.task.conjunct
    events = frozenset(conjunct.events)
    store = Store()
    for instance in outcome.instances:
        store.add(instance)
    rarest = min(sorted(events), key=lambda name: len(store.instances.get(name, ())))
    return {
        detection_of(frozenset(match))
        for anchor in store.instances.get(rarest, ())
        for match in matches_with(conjunct, anchor, events, store.near(conjunct, anchor, events))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--most-runs", type=int, default=MOST_RUNS, help=f"of a plan (default: {MOST_RUNS})")
    parser.add_argument("--machines", action="store_true", help="let the state machines of agents do it")
    parser.add_argument(
        "--seconds", type=float, default=RUN_S, help=f"of one run, of the network's time (default: {RUN_S:g})"
    )
    parser.add_argument(
        "--windows", type=float, nargs="+", default=WINDOWS_MIN, metavar="MIN", help="(default: 1 3)"
    )
    options = parser.parse_args()
    carry: Carry = carry_out if options.machines else simulate
    rows: list[Row] = []
    for network, window, tolerance in product(networks(), options.windows, TOLERANCES_MIN):
        estimator, tree = prepared(with_window(network, window), tolerance * MINUTE)
        for name, planner in (("Comet", comet), ("ours", beyond)):
            plan = planner(estimator, tree)
            if plan is not None:
                counted = row(network, tolerance, name, plan, options.most_runs, carry, options.seconds)
                rows.append({"window_min": window, **counted})
                print(rows[-1], file=sys.stderr, flush=True)
    figures = {
        "benchmark": "comet_estimator",
        "max_relative_error": max(abs(each["error"]) for each in rows),
        "late": sum(each["late"] for each in rows),
        "missed": sum(each["missed"] for each in rows),
        "invented": sum(each["invented"] for each in rows),
        "detections": sum(each["detections"] for each in rows),
    }
    show("Estimates against plans carried out", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
