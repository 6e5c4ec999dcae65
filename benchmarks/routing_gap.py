"""Measures what routing by our OLSR is worth beside routing that knows the true links: goodput of a saturated
stream.

25 nodes in a 1200 m square, random waypoint; camera → two operators → screen, 10 kB tuples offered 30 times
a second, which is more than the radio carries. Goodput is what the screen got in the measured time, counted
from its records. ``share`` is OLSR's goodput over ground truth's, both as means over the seeds, with its 95 %
interval; ``etx_ff`` is the daemon's default and shows where we come from. ``overhead`` is what the daemons
sent, relayed messages and headers included, over what they sent with etx_ff on the same seeds.

``--handicaps`` instead shows, at 10 m/s, what single faults of routing cost: ground truth that is 2 or 4 s
old, or that judges links by frames as short as HELLOs; and ``fast`` without one of its parts. In virtual time
only.

In virtual time (``--backend sim``) it needs a core for about 20 s a run; in namespaces (``netns``, root) a
run takes as long as it says. Runs that are not valid (a late radio) or that failed are left out. Ctrl-C shows
what there is.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.radio.report import Row, show
from benchmarks.routing import handicaps
from benchmarks.shared.measured import measured
from benchmarks.shared.runs import described, perform
from node_agent.telemetry.segments import read_records
from orchestrator.lifecycle.invocation import FinishedRun
from orchestrator.results.comparison import compare

SPEEDS = (1, 5, 10)
REPLICAS = (1, 3)
PLACEMENTS = ("random", "colocate")
TRUTH, DEFAULT, OURS = "ground_truth", "etx_ff", "fast"
TARGETS = {5: 0.85, 10: 0.75}
MOST_OVERHEAD = 1.5
PAYLOAD, RATE = "10 kB", "30 fps"
_FILE = Path(handicaps.__file__).resolve()
HANDICAPS: Mapping[str, dict[str, Any]] = {
    "truth 2 s old": {"protocol": f"{_FILE}:Truth", "age": 2.0},
    "truth 4 s old": {"protocol": f"{_FILE}:Truth", "age": 4.0},
    "truth for short frames": {"protocol": f"{_FILE}:Truth", "short_frames": True},
    OURS: {"protocol": "olsr", "quality": OURS},
    **{
        f"fast without {part}": {"protocol": f"{_FILE}:Olsr", "quality": OURS, "without": part}
        for part in handicaps.PARTS
    },
}
HANDICAP_SPEEDS = (10,)
SHOWN = (
    "speed_mps",
    "replicas",
    "placement",
    "quality",
    "pairs",
    "ground_truth",
    "goodput",
    "share",
    "share_low",
    "share_high",
)
"""The columns of ``--handicaps``."""


Group = tuple[int, int, str]
"""Speed, replicas, placement."""


class Case(NamedTuple):
    speed: int
    replicas: int
    placement: str
    seed: int
    routing: str
    """``ground_truth``, how the daemons rate links, or a handicap."""


def case_of(group: Group, seed: int, routing: str) -> Case:
    speed, replicas, placement = group
    return Case(speed, replicas, placement, seed, routing)


class Outcome(NamedTuple):
    goodput: float
    """Tuples a second."""
    overhead: float
    """Bytes a second that all routing daemons sent."""
    valid: bool


NOTHING = Outcome(0.0, 0.0, valid=False)
"""Of a run that failed."""


def document(case: Case, backend: str, warmup_s: float, duration_s: float) -> dict[str, Any]:
    routing = HANDICAPS.get(case.routing, {"protocol": "olsr", "quality": case.routing})
    if case.routing == TRUTH:
        routing = {"protocol": TRUTH}
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
    return outcome(perform(experiment, root, re.sub("[^a-z0-9]+", "-", "-".join(map(str, case)))))


def outcome(finished: FinishedRun) -> Outcome:
    """Measures a run, and removes what it recorded: that of all runs would fill a disk."""
    directory, verdict = finished.directory, finished.verdict.verdict
    found = NOTHING
    if verdict != "failed":  # otherwise there may be no measured time
        manifest = json.loads(directory.manifest.read_text())
        sent = routing_bytes(directory.nodes, manifest["measure_from_ns"], manifest["measure_until_ns"])
        found = Outcome(measured(directory)["goodput_fps"], sent, valid=verdict == "valid")
    shutil.rmtree(directory.path)
    return found


def routing_bytes(nodes: Path, begin_ns: int, end_ns: int) -> float:
    """Returns the routing bytes a second of the measured time, of all nodes."""
    sent = 0.0
    for node in sorted(nodes.iterdir()):
        totals: dict[str, list[tuple[int, int]]] = {}
        for record in read_records(node / "segments"):
            if record["kind"] == "routing_overhead" and record["t_ns"] <= end_ns:
                total = record["sent_bytes"] + record["forwarded_bytes"]
                totals.setdefault(record["message"], []).append((record["t_ns"], total))
        sent += sum(_per_second(each, begin_ns) for each in totals.values())
    return sent


def _per_second(totals: Sequence[tuple[int, int]], begin_ns: int) -> float:
    """Returns the growth of a counter since about ``begin_ns``."""
    before = [each for each in totals if each[0] <= begin_ns]
    first = before[-1] if before else totals[0]
    last = totals[-1]
    return (last[1] - first[1]) / (last[0] - first[0]) * 1e9 if last[0] > first[0] else 0.0


def row(group: Group, quality: str, outcomes: Mapping[Case, Outcome], seeds: Sequence[int]) -> Row | None:
    """Compares pairs only: seeds whose runs are there and valid with both routings; None if there is none.

    ``overhead`` and ``reached`` are None if no run of etx_ff is there to compare with; so are ``target`` and
    ``reached`` at a speed without a target.
    """
    speed, replicas, placement = group

    def valid(seed: int, *routings: str) -> bool:
        found = [outcomes.get(case_of(group, seed, routing)) for routing in routings]
        return all(each is not None and each.valid for each in found)

    def of(seed: int, routing: str) -> Outcome:
        return outcomes[case_of(group, seed, routing)]

    paired = [seed for seed in seeds if valid(seed, TRUTH, quality)]
    goodputs = [(of(seed, quality).goodput, of(seed, TRUTH).goodput) for seed in paired]
    sent = [
        (of(seed, quality).overhead, of(seed, DEFAULT).overhead)
        for seed in seeds
        if valid(seed, DEFAULT, quality)
    ]
    if not goodputs:
        return None
    share, target = ratio(goodputs), TARGETS.get(speed)
    overhead = ratio(sent) if sent else None
    low, high = compare(goodputs).ratio_of_means_95 or (None, None)
    reached = None
    if target is not None and overhead is not None:
        reached = share >= target and overhead <= MOST_OVERHEAD
    return {
        "speed_mps": speed,
        "replicas": replicas,
        "placement": placement,
        "quality": quality,
        "pairs": len(paired),
        "ground_truth": mean([truth for _, truth in goodputs]),
        "goodput": mean([ours for ours, _ in goodputs]),
        "share": share,
        "share_low": low,
        "share_high": high,
        "target": target,
        "overhead": overhead,
        "reached": reached,
    }


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns the ratio of the means."""
    below = sum(each for _, each in pairs)
    return sum(each for each, _ in pairs) / below if below else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=5, help="runs per row (default: 5)")
    parser.add_argument("--default-seeds", type=int, help=f"seeds with {DEFAULT}, too (default: all)")
    parser.add_argument("--handicaps", action="store_true", help="measure handicaps instead of qualities")
    parser.add_argument("--speeds", type=int, nargs="+", help="m/s (default: 1, 5 and 10; of handicaps 10)")
    parser.add_argument("--replicas", type=int, nargs="+", default=REPLICAS)
    parser.add_argument("--placements", nargs="+", default=PLACEMENTS, choices=PLACEMENTS)
    parser.add_argument("--quality", nargs="+", default=[OURS], help="how daemons rate links (default: fast)")
    parser.add_argument("--backend", default="sim", choices=["sim", "netns"])
    parser.add_argument("--warmup", type=float, default=20.0, help="seconds (default: 20)")
    parser.add_argument("--duration", type=float, default=120.0, help="seconds that count (default: 120)")
    options = parser.parse_args()
    if options.handicaps and options.backend != "sim":
        parser.error("--handicaps: in virtual time only (--backend sim)")
    speeds = options.speeds or (HANDICAP_SPEEDS if options.handicaps else SPEEDS)
    groups = list(product(speeds, options.replicas, options.placements))
    seeds = range(1, options.seeds + 1)
    with_default = options.seeds if options.default_seeds is None else options.default_seeds
    routings = list(dict.fromkeys((TRUTH, DEFAULT, *options.quality)))
    if options.handicaps:
        routings = [TRUTH, *HANDICAPS]
    outcomes: dict[Case, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        for seed, group, routing in product(seeds, groups, routings):
            if routing == DEFAULT and DEFAULT not in options.quality and seed > with_default:
                continue
            case = case_of(group, seed, routing)
            outcomes[case] = run(case, options.backend, options.warmup, options.duration, Path(folder))
            print(case, outcomes[case], file=sys.stderr, flush=True)
    qualities = [routing for routing in routings if routing != TRUTH]
    made = [row(group, quality, outcomes, seeds) for group in groups for quality in qualities]
    rows = [each for each in made if each is not None]
    if not rows:
        raise SystemExit("routing_gap: no pair of valid runs to compare")
    figures: dict[str, Any] = {
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
        "largest_overhead": max(
            (each["overhead"] for each in rows if each["overhead"] is not None), default=None
        ),
    }
    if options.handicaps:
        rows = [{name: each[name] for name in SHOWN} for each in rows]
        del figures["largest_overhead"]
    show("What OLSR is worth beside ground truth", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
