"""Measures what ten minutes of OLSR cost in virtual time, radio model included, on one core.

olsrd's defaults on the 802.11b medium at the paper's setting, at the density of 25 nodes in 1200 m × 1200 m:
a grid, and random waypoint at 5 ± 1 m/s with the channel renewed ten times a second. There is no other
traffic, and routes are computed only when a node wants to send: with ``tables_read`` every node does so once
a second.
"""

import argparse
import random
import time
from math import sqrt

from benchmarks.olsr.virtual import Roaming, VirtualNetwork
from benchmarks.radio.report import Row, show
from node_agent.olsr.config import OlsrConfig
from orchestrator.backends.sim.worker import look_for_garbage_rarely
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.static import grid_paths
from orchestrator.model.trace import Trace
from orchestrator.radio.presets import seed_80211b
from orchestrator.radio.settings import Mac

TARGETS = {(100, 600.0): 60.0}
SIDE_OF_25_M = 1200.0
SPEED, PAUSE = (4.0, 6.0), (1.0, 3.0)
SEED = 1


def simulate(nodes: int, seconds: float, *, moving: bool, tables_read: bool) -> Row:
    names = [f"n{number:03d}" for number in range(1, nodes + 1)]
    side = SIDE_OF_25_M * sqrt(nodes / 25)
    paths = (
        {
            node: random_waypoint_path(
                random.Random(f"mobility/{SEED}/{node}"), (side, side), SPEED, PAUSE, seconds
            )
            for node in names
        }
        if moving
        else grid_paths(names, side / sqrt(nodes))
    )
    air = Roaming(Trace(paths), seed_80211b(), Mac(), SEED)
    network = VirtualNetwork(names, air, OlsrConfig(), SEED)
    started = time.process_time()
    if tables_read:
        for second in range(1, int(seconds)):
            network.run_until(second)
            network.tables()
    network.run_until(seconds)
    spent = time.process_time() - started
    tables = network.tables()
    network.close()
    return {
        "nodes": nodes,
        "moving": moving,
        "tables_read": tables_read,
        "virtual_s": seconds,
        "cpu_s": spent,
        "target_s": TARGETS.get((nodes, seconds)),
        "times_real_time": seconds / spent,
        "packets": sum(node.broadcasts for node in air.medium.node_truth()),
        "routes_per_node": sum(map(len, tables.values())) / nodes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=600.0, help="virtual time (default: 600)")
    parser.add_argument("--nodes", type=int, default=100, help="(default: 100)")
    options = parser.parse_args()
    look_for_garbage_rarely()
    cases = [(False, False), (False, True), (True, False)]
    rows = [
        simulate(options.nodes, options.seconds, moving=moving, tables_read=tables_read)
        for moving, tables_read in cases
    ]
    figures = {
        "benchmark": "olsr_speed",
        "nodes": options.nodes,
        "virtual_s": options.seconds,
        "cpu_s": max(row["cpu_s"] for row in rows),
    }
    show("OLSR in virtual time on one core", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
