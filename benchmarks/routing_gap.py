"""Measures what routing by our OLSR is worth beside routing that knows the true links: goodput of a saturated
stream.

25 nodes in a 1200 m square, random waypoint; camera → two operators → screen, 10 kB tuples offered 30 times
a second, which is more than the radio carries. Goodput is what the screen got in the measured time, counted
from its records. ``share`` is OLSR's goodput over ground truth's, both as means over the seeds; ``etx_ff`` is
the daemon's default and shows where we come from. ``overhead`` is what the daemons sent, relayed messages and
headers included, over what they sent with etx_ff in the same runs.

In virtual time (``--backend sim``) it needs a core for about 20 s a run; in namespaces (``netns``, root) a
run takes as long as it says, and runs that are not valid (a late radio) are left out and counted.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.radio.report import Row, show
from benchmarks.shared.runs import described, perform
from node_agent.telemetry.segments import read_records

SPEEDS = (5, 10)
REPLICAS = (1, 3)
PLACEMENTS = ("random", "colocate")
TRUTH, DEFAULT, OURS = "ground_truth", "etx_ff", "fast"
TARGETS = {5: 0.85, 10: 0.75}
MOST_OVERHEAD = 1.5
PAYLOAD, RATE = "10 kB", "30 fps"


Group = tuple[int, int, str]
"""Speed, replicas, placement."""


class Case(NamedTuple):
    speed: int
    replicas: int
    placement: str
    seed: int
    routing: str
    """``ground_truth``, or how the daemons rate links."""


def case_of(group: Group, seed: int, routing: str) -> Case:
    speed, replicas, placement = group
    return Case(speed, replicas, placement, seed, routing)


class Outcome(NamedTuple):
    goodput: float
    """Tuples a second."""
    overhead: float
    """Bytes a second that all routing daemons sent."""
    valid: bool


Outcomes = dict[str, Sequence[Outcome]]
"""Those of all seeds, by routing."""


def document(case: Case, backend: str, warmup_s: float, duration_s: float) -> dict[str, Any]:
    routing: dict[str, Any] = {"protocol": TRUTH}
    if case.routing != TRUTH:
        routing = {"protocol": "olsr", "quality": case.routing}
    mobility = {
        "model": "random_waypoint",
        "speed": f"{case.speed} m/s",
        "speed_spread": "1 m/s",
        "pause": "2 s",
        "pause_spread": "1 s",
    }
    return {
        "name": "routing-gap",
        "backend": backend,
        "topology": {"name": "field", "nodes": 25, "area": "1200 m x 1200 m", "mobility": mobility},
        "routing": routing,
        "query": {"name": "synthetic_chain", "operators": 2, "payload": PAYLOAD, "rate": RATE},
        "placement": {"policy": case.placement},
        "replicas": case.replicas,
        "warmup": warmup_s,
        "duration": duration_s,
        "seed": case.seed,
    }


def run(case: Case, backend: str, warmup_s: float, duration_s: float, root: Path) -> Outcome:
    experiment = described(document(case, backend, warmup_s, duration_s))
    finished = perform(experiment, root, "-".join(map(str, case)).replace("_", "-"))
    manifest = json.loads(finished.directory.manifest.read_text())
    begin, end = manifest["measure_from_ns"], manifest["measure_until_ns"]
    return Outcome(*counted(finished.directory.nodes, begin, end), valid=finished.verdict.verdict == "valid")


def counted(nodes: Path, begin_ns: int, end_ns: int) -> tuple[float, float]:
    """Returns the goodput and the routing bytes a second of the measured time."""
    delivered, sent = 0, 0.0
    seconds = (end_ns - begin_ns) / 1e9
    for node in sorted(nodes.iterdir()):
        totals: dict[str, list[tuple[int, int]]] = {}
        for record in read_records(node / "segments"):
            at, kind = record["t_ns"], record["kind"]
            if kind == "tuple_delivered" and begin_ns <= at < end_ns:
                delivered += record.get("tuples", 1)
            elif kind == "routing_overhead" and at <= end_ns:
                total = record["sent_bytes"] + record["forwarded_bytes"]
                totals.setdefault(record["message"], []).append((at, total))
        sent += sum(_per_second(each, begin_ns) for each in totals.values())
    return delivered / seconds, sent


def _per_second(totals: Sequence[tuple[int, int]], begin_ns: int) -> float:
    """Returns the growth of a counter since about ``begin_ns``."""
    before = [each for each in totals if each[0] <= begin_ns]
    first = before[-1] if before else totals[0]
    last = totals[-1]
    return (last[1] - first[1]) / (last[0] - first[0]) * 1e9 if last[0] > first[0] else 0.0


def row(group: Group, quality: str, of: Outcomes) -> Row:
    speed, replicas, placement = group
    truth, ours = (mean(each.goodput for each in of[routing]) for routing in (TRUTH, quality))
    default, sent = (mean(each.overhead for each in of[routing]) for routing in (DEFAULT, quality))
    share, overhead = ours / truth, sent / default
    return {
        "speed_mps": speed,
        "replicas": replicas,
        "placement": placement,
        "quality": quality,
        "runs": len(of[TRUTH]),
        "ground_truth": truth,
        "goodput": ours,
        "share": share,
        "target": TARGETS.get(speed),
        "overhead": overhead,
        "reached": share >= TARGETS.get(speed, 0.0) and overhead <= MOST_OVERHEAD,
    }


def in_all(outcomes: dict[Case, Outcome], group: Group, routings: Iterable[str], seeds: int) -> Outcomes:
    """Returns the outcomes by routing of those seeds whose runs were all valid: shares compare pairs."""

    def of(seed: int, routing: str) -> Outcome:
        return outcomes[case_of(group, seed, routing)]

    kept = [seed for seed in range(1, seeds + 1) if all(of(seed, routing).valid for routing in routings)]
    return {routing: [of(seed, routing) for seed in kept] for routing in routings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=5, help="runs per row (default: 5)")
    parser.add_argument("--speeds", type=int, nargs="+", default=SPEEDS)
    parser.add_argument("--replicas", type=int, nargs="+", default=REPLICAS)
    parser.add_argument("--placements", nargs="+", default=PLACEMENTS, choices=PLACEMENTS)
    parser.add_argument("--quality", nargs="+", default=[OURS], help="how daemons rate links (default: fast)")
    parser.add_argument("--backend", default="sim", choices=["sim", "netns"])
    parser.add_argument("--warmup", type=float, default=20.0, help="seconds (default: 20)")
    parser.add_argument("--duration", type=float, default=120.0, help="seconds that count (default: 120)")
    options = parser.parse_args()
    groups = list(product(options.speeds, options.replicas, options.placements))
    routings = list(dict.fromkeys((TRUTH, DEFAULT, *options.quality)))
    outcomes: dict[Case, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        for group, seed, routing in product(groups, range(1, options.seeds + 1), routings):
            case = case_of(group, seed, routing)
            outcomes[case] = run(case, options.backend, options.warmup, options.duration, Path(folder))
            print(case, outcomes[case], file=sys.stderr, flush=True)
    rows = []
    for group in groups:
        of = in_all(outcomes, group, routings, options.seeds)
        rows += [row(group, quality, of) for quality in routings if quality != TRUTH and of[TRUTH]]
    figures = {
        "benchmark": "routing_gap",
        "backend": options.backend,
        "seeds": options.seeds,
        "valid_runs": sum(each.valid for each in outcomes.values()),
        "runs": len(outcomes),
        "olsr_share_of_ground_truth": {
            f"{each['speed_mps']} m/s, k={each['replicas']}, {each['placement']}, {each['quality']}": round(
                each["share"], 3
            )
            for each in rows
        },
        "largest_overhead": max((each["overhead"] for each in rows), default=0.0),
    }
    show("What OLSR is worth beside ground truth", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
