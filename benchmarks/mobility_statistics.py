"""Compares our random waypoint with ns-3's: degree, link changes, connectivity, hops and speed of 25 nodes.

ns-3's means and standard deviations are over 10 seeds of ns-3 3.44. Its assumptions are ours here: uniform
starts, v ± 1 m/s (at least 1 mm/s), pauses of 1 to 3 s, 1200 m square, range 450 m, window [50, 200) s. The
pause is the paper's: ns-3's record does not state it, but its mean speeds fit it.
"""

import argparse
import json
import random
from dataclasses import asdict
from math import sqrt
from statistics import mean, stdev

from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.statistics import mobility_statistics
from orchestrator.model.trace import Trace

NODES = 25
AREA = (1200.0, 1200.0)
PAUSE = (1.0, 3.0)
RANGE_M = 450.0
NS3_SEEDS = 10
WINDOW = (50.0, 200.0)

# Speed in m/s → measure → (mean, standard deviation over runs).
NS3: dict[int, dict[str, tuple[float, float]]] = {
    1: {
        "degree": (9.1653, 1.0696),
        "links_up_per_s": (0.2607, 0.0468),
        "links_down_per_s": (0.0887, 0.0412),
        "link_changes_per_s": (0.3493, 0.0561),
        "connected_pairs": (0.9984, 0.0052),
        "shortest_path_hops": (1.9056, 0.1803),
        "mean_speed": (0.8894, 0.0617),
    },
    5: {
        "degree": (11.9487, 1.0032),
        "links_up_per_s": (0.8513, 0.1247),
        "links_down_per_s": (1.0380, 0.0903),
        "link_changes_per_s": (1.8893, 0.1072),
        "connected_pairs": (0.9995, 0.0016),
        "shortest_path_hops": (1.6187, 0.0920),
        "mean_speed": (4.8346, 0.0710),
    },
    10: {
        "degree": (11.0700, 0.5054),
        "links_up_per_s": (1.7333, 0.0703),
        "links_down_per_s": (1.9620, 0.0963),
        "link_changes_per_s": (3.6953, 0.1287),
        "connected_pairs": (0.9971, 0.0046),
        "shortest_path_hops": (1.6782, 0.0484),
        "mean_speed": (9.6819, 0.0674),
    },
}


def measure(speed: float, seed: int) -> dict[str, float]:
    trace = Trace(
        {
            f"n{i}": random_waypoint_path(
                random.Random(f"mobility/{seed}/n{i}"), AREA, (speed - 1, speed + 1), PAUSE, WINDOW[1]
            )
            for i in range(1, NODES + 1)
        }
    )
    values: dict[str, float] = asdict(mobility_statistics(trace, RANGE_M, *WINDOW))
    values["link_changes_per_s"] = values["links_up_per_s"] + values["links_down_per_s"]
    return values


def compare(seeds: int) -> list[dict[str, object]]:
    """Returns a row per speed and measure. Within the spread: our mean differs from ns-3's by at most its
    deviation.

    ``standard_errors`` is that difference over the error of both means, with our runs' spread: ns-3's ten
    runs estimate it poorly.
    """
    rows: list[dict[str, object]] = []
    for speed, reference in NS3.items():
        runs = [measure(speed, seed) for seed in range(1, seeds + 1)]
        for name, (ns3_mean, ns3_sd) in reference.items():
            ours = [run[name] for run in runs]
            error = stdev(ours) * sqrt(1 / seeds + 1 / NS3_SEEDS)
            rows.append(
                {
                    "speed": speed,
                    "measure": name,
                    "ours": round(mean(ours), 4),
                    "ours_sd": round(stdev(ours), 4),
                    "ns3": ns3_mean,
                    "ns3_sd": ns3_sd,
                    "standard_errors": round((ns3_mean - mean(ours)) / error, 2),
                    "within_spread": abs(mean(ours) - ns3_mean) <= ns3_sd,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--seeds", type=int, default=40, help="runs per speed, at least 2 (default: 40)")
    options = parser.parse_args()
    rows = compare(options.seeds)
    if options.json:
        outside = [f"{row['measure']} at {row['speed']} m/s" for row in rows if not row["within_spread"]]
        print(json.dumps({"benchmark": "mobility_statistics", "outside_spread": outside, "rows": rows}))
        return
    line = (
        "{speed:>3} m/s  {measure:20} {ours:8} ± {ours_sd:<7} ns-3 {ns3:8} ± {ns3_sd:<7} {standard_errors:6}"
    )
    for row in rows:
        print(line.format(**row), "" if row["within_spread"] else "outside ns-3's spread")


if __name__ == "__main__":
    main()
