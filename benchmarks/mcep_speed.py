"""Measures how fast brokers follow vehicles in virtual time, on one core: SUMO's traffic, one moving query.

Each vehicle reads its speed once a second and tells changes of lanes. One of them asks for accidents, or for
the mean speed, in a square around it; the interest switches once a second. ``times_real_time``: virtual
seconds in a second of CPU time, without SUMO's. ``twice_the_vehicles`` at the same density, so that the
interest has as many events, and ``four_times_the_interest``: by how much events of sensors, those streamed to
operators, and CPU time grow; ``us_each``: microseconds for each further event of a sensor, and for each
further event that is streamed. These are of at most 60 s, the cheapest of three times.
"""

import argparse
import time
from collections.abc import Sequence
from math import sqrt
from typing import Any

from benchmarks.radio.report import show
from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.geometry import Box, squares
from node_agent.apps.mcep.interest import Timed
from node_agent.apps.mcep.model import Policy, Query
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import graph_of
from orchestrator.apps.mcep.stage import Stage, driven
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.spec.area import Area

BROKERS = 9
EDGE_M, HISTORY_S = 500.0, 5.0
SWITCH_S = 0.9
BRIEFLY_S, REPEATS = 60.0, 3
DENSITY = 3000.0 * 3000.0 / 1000
"""Square metres for each vehicle."""


def drives_of(vehicles: int, seconds: float, seed: int = 1) -> tuple[dict[str, Drive], Box]:
    side = sqrt(DENSITY * vehicles)
    names = tuple(f"car{number}" for number in range(1, vehicles + 1))
    found = SumoTraffic(model="sumo").drives(names, Area(side, side), seed, seconds)
    return {name: Drive([Sample(*each) for each in samples]) for name, samples in found.items()}, Box(
        0, 0, side, side
    )


def stage_of(drives: dict[str, Drive], area: Box, situation: str, edge: float) -> Stage:
    brokers = [f"b{number}" for number in range(1, BROKERS + 1)]
    graph = graph_of(situation, {})
    query = Query("ahead", graph, "car1", squares(edge), HISTORY_S, Policy(suppression=True))
    hosts = {each.name: brokers[number % BROKERS] for number, each in enumerate(graph.operators)}
    ttl = HISTORY_S + max(graph.additional_time(each.name) for each in graph.sources) + 10
    deployed = Deployed(query, hosts, brokers[BROKERS // 2], Timed(SWITCH_S))
    deployment = Deployment(grid(brokers, area), tuple(drives), (deployed,), ttl)
    check_deployment(deployment)
    return Stage(deployment)


def measured(
    drives: dict[str, Drive], area: Box, seconds: float, situation: str, edge: float
) -> dict[str, Any]:
    stage = stage_of(drives, area, situation, edge)
    readings = driven(drives, 1.0, seconds)
    started = time.process_time()
    stage.play(readings, seconds)
    spent = time.process_time() - started
    return {
        "situation": situation,
        "edge_m": edge,
        "vehicles": len(drives),
        "events": stage.seen,
        "streamed": sum(each.done().streamed for each in stage.brokers.values()),
        "switches": max(len(each.markers("ahead")) for each in stage.brokers.values()),
        "delivered": len(stage.clients["car1"].results),
        "cpu_s": spent,
        "events_per_second": stage.seen / spent,
        "times_real_time": seconds / spent,
    }


def cheapest(cases: Sequence[tuple[dict[str, Drive], Box, float]], seconds: float) -> list[dict[str, Any]]:
    """Measures all cases in turn, several times. Of each the cheapest: others may use the machine, too."""
    rounds = [
        [measured(drives, area, seconds, "accident", edge) for drives, area, edge in cases]
        for _ in range(REPEATS)
    ]
    return [min(rows, key=lambda row: float(row["cpu_s"])) for rows in zip(*rounds, strict=True)]


def growth(less: dict[str, Any], more: dict[str, Any], of: str) -> dict[str, float]:
    """How much more there is of what, how much more it costs, and CPU time for each more of one of them."""
    grown = {key: more[key] / less[key] for key in ("events", "streamed", "cpu_s")}
    return {**grown, "us_each": 1e6 * (more["cpu_s"] - less["cpu_s"]) / (more[of] - less[of])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--vehicles", type=int, default=1000, help="(default: 1000)")
    parser.add_argument("--seconds", type=float, default=500.0, help="virtual time (default: 500)")
    options = parser.parse_args()
    seconds, rows = options.seconds, []
    drives, area = drives_of(options.vehicles, seconds)
    for situation in ("accident", "average_speed"):
        for edge in (EDGE_M, 2 * EDGE_M):
            rows.append(measured(drives, area, seconds, situation, edge))
    briefly = min(seconds, BRIEFLY_S)
    fewer, smaller = drives_of(options.vehicles // 2, briefly)
    half, whole, wider = cheapest(
        [(fewer, smaller, EDGE_M), (drives, area, EDGE_M), (drives, area, 2 * EDGE_M)], briefly
    )
    rows += [half, whole, wider]
    first = rows[0]
    figures = {
        "benchmark": "mcep_speed",
        "events_per_second": first["events_per_second"],
        "vehicles": first["vehicles"],
        "times_real_time": first["times_real_time"],
        "twice_the_vehicles": growth(half, whole, "events"),
        "four_times_the_interest": growth(whole, wider, "streamed"),
    }
    show("Brokers that follow vehicles in virtual time, on one core", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
