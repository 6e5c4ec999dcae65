"""Measures how fast brokers follow vehicles in virtual time, on one core: SUMO's traffic, one moving query.

Each vehicle reads its speed once a second and tells changes of lanes. One of them asks for accidents, or for
the mean speed, in a square around it; the interest switches once a second. ``times_real_time``: virtual
seconds in a second of CPU time, without SUMO's. Rows with a square of four times the area, and with half of
the vehicles at the same density, show what the cost grows with.
"""

import argparse
import time
from math import sqrt
from typing import Any

from benchmarks.mcep.town import Town, numbered
from benchmarks.radio.report import Row, show
from node_agent.apps.mcep.areas import grid
from node_agent.apps.mcep.deployment import Deployed, Deployment
from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.interest import Timed
from node_agent.apps.mcep.model import Policy, Query
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.apps.mcep.situations import SITUATIONS, graph_of
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.spec.area import Area

BROKERS = 9
EDGE_M, HISTORY_S = 500.0, 5.0
SWITCH_S = 0.9
DENSITY = 3000.0 * 3000.0 / 1000
"""Square metres for each vehicle."""


def drives_of(vehicles: int, seconds: float, seed: int = 1) -> tuple[dict[str, Drive], Box]:
    side = sqrt(DENSITY * vehicles)
    names = numbered(vehicles, "car")
    found = SumoTraffic(model="sumo").drives(names, Area(side, side), seed, seconds)
    return {name: Drive([Sample(*each) for each in samples]) for name, samples in found.items()}, Box(
        0, 0, side, side
    )


def town_of(
    drives: dict[str, Drive], area: Box, seconds: float, situation: str, edge: float, keep: bool = False
) -> Town:
    brokers = numbered(BROKERS, "b")
    graph = graph_of(situation, {})
    half = edge / 2

    def square(place: Point) -> Box:
        return Box(place.x - half, place.y - half, place.x + half, place.y + half)

    query = Query("ahead", graph, "car1", square, HISTORY_S, Policy(suppression=True))
    hosts = {each.name: brokers[number % BROKERS] for number, each in enumerate(graph.operators)}
    ttl = HISTORY_S + max(graph.additional_time(each.name) for each in graph.sources) + 10
    deployed = Deployed(query, hosts, brokers[BROKERS // 2], Timed(SWITCH_S))
    deployment = Deployment(grid(brokers, area), tuple(drives), (deployed,), ttl)
    return Town(deployment, drives, 1.0, seconds, keep)


def measured(town: Town, seconds: float, **facts: Any) -> Row:
    started = time.process_time()
    town.play()
    spent = time.process_time() - started
    walker = town.clients["car1"]
    return {
        **facts,
        "vehicles": len(town.clients),
        "events": town.seen,
        "streamed": town.sent["Streamed"],
        "switches": max(len(each.markers("ahead")) for each in town.brokers.values()),
        "delivered": len(walker.results),
        "cpu_s": spent,
        "events_per_second": town.seen / spent,
        "times_real_time": seconds / spent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--vehicles", type=int, default=1000, help="(default: 1000)")
    parser.add_argument("--seconds", type=float, default=500.0, help="virtual time (default: 500)")
    options = parser.parse_args()
    seconds, rows = options.seconds, []
    drives, area = drives_of(options.vehicles, seconds)
    for situation in SITUATIONS:
        for edge in (EDGE_M, 2 * EDGE_M):
            town = town_of(drives, area, seconds, situation, edge)
            rows.append(measured(town, seconds, situation=situation, edge_m=edge))
    fewer, smaller = drives_of(options.vehicles // 2, seconds)
    town = town_of(fewer, smaller, seconds, "accident", EDGE_M)
    rows.append(measured(town, seconds, situation="accident", edge_m=EDGE_M))
    first = rows[0]
    figures = {
        "benchmark": "mcep_speed",
        "events_per_second": first["events_per_second"],
        "vehicles": first["vehicles"],
        "times_real_time": first["times_real_time"],
    }
    show("Brokers that follow vehicles in virtual time, on one core", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
