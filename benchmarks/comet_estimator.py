"""Holds estimated costs and promised delays against plans that are carried out message by message.

On every network of the figures, for Comet's plan and ours and several tolerances. ``max_relative_error``: of
the cost; ``late``: detections later than promised; ``missed``, ``invented``: detections that differ from
those in the events that occurred. The run is the simulation in ``benchmarks/comet/simulation.py``, not
agents.
"""

import argparse

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
from benchmarks.comet.simulation import Outcome, simulate
from benchmarks.radio.report import Row, show
from node_agent.apps.comet.conjuncts import matches_with
from node_agent.apps.comet.events import Detection, Instance, detection_of
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.estimator import Plan
from orchestrator.apps.comet.planning.planners import comet

TOLERANCES_MIN = (30, 60, 150)
PACKETS = 8000
"""So many events are to be sent in a run: then chance alone is a few per cent."""
LONGEST_S = 4e6


def networks() -> list[Network]:
    six = [figure6(uniform_cost=uniform) for uniform in (True, False)]
    return [figure4(), figure5(), *six, figure8(), *(figure9(depth) for depth in (2, 3, 4))]


def row(network: Network, tolerance_min: float, name: str, plan: Plan, packets: int) -> Row:
    # A packet over the cheapest link costs least: so many seconds are enough.
    dearest = max(link.cost_factor(network.world.sizes) for link in network.world.links)
    duration = min(packets * dearest / plan.cost, LONGEST_S)
    outcome = simulate(plan, network.world, seed=1, duration=duration)
    true = occurred(plan, outcome)
    return {
        "network": network.name,
        "tolerance_min": tolerance_min,
        "planner": name,
        "estimated": plan.cost * MINUTE,
        "counted": outcome.cost * MINUTE,
        "error": plan.cost / outcome.cost - 1,
        "events_sent": outcome.events_sent,
        "promised_min": plan.delay / MINUTE,
        "worst_min": outcome.worst_delay / MINUTE,
        "detections": len(outcome.delays),
        "late": sum(delay > plan.delay for delay in outcome.delays.values()),
        "missed": len(true - set(outcome.delays)),
        "invented": len(set(outcome.delays) - true),
    }


def occurred(plan: Plan, outcome: Outcome) -> set[Detection]:
    """All detections, found by looking around each instance of the rarest event."""
    conjunct = plan.tree.task.conjunct
    by_event: dict[str, list[Instance]] = {name: [] for name in conjunct.events}
    for instance in sorted(outcome.instances):
        by_event[instance.event].append(instance)
    rarest = min(conjunct.events, key=lambda name: len(by_event[name]))
    return {
        detection_of(frozenset(match))
        for anchor in by_event[rarest]
        for match in matches_with(conjunct, anchor, conjunct.events, by_event)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--packets", type=int, default=PACKETS, help=f"(default: {PACKETS})")
    options = parser.parse_args()
    rows: list[Row] = []
    for network in networks():
        for tolerance in TOLERANCES_MIN:
            estimator, tree = prepared(network, tolerance * MINUTE)
            for name, planner in (("Comet", comet), ("ours", beyond)):
                plan = planner(estimator, tree)
                if plan is not None:
                    rows.append(row(network, tolerance, name, plan, options.packets))
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
