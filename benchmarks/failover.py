"""Measures at the sink how long a stream stops when the node of the replica in use dies.

A chain of two operators with two replicas each, whole agents over our OLSR with its defaults (HELLO 1 s,
valid 4 s). At a drawn time the radio of the active replica's node falls silent and its agent is killed, for
good. ``seconds`` is the longest pause between two deliveries from then on, minus the usual one. It must not
exceed twice the routing daemon's time to notice, nor 3 s. Seeds draw the time; operators, exactly_once and
best_effort take turns.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from benchmarks.shared.runs import described, leftovers, own_reasons, perform
from node_agent.telemetry.segments import read_records
from orchestrator.lifecycle.invocation import FinishedRun
from orchestrator.runs.files import parse_lines
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import section

RATE = 20.0
DURATION = 16.0
HELLO_VALIDITY = 4.0
LIMIT = min(2 * HELLO_VALIDITY, 3.0)
TRIALS = {"sim": 20, "netns": 6}
OPERATORS = ("first", "second")
PLACES = {"source": ["s"], "first": ["a0", "a1"], "second": ["b0", "b1"], "sink": ["z"]}
SENDERS = {"first": ["s"], "second": ["a0", "a1"]}
POSITIONS = {"s": (0, 0), "a0": (90, 0), "b0": (180, 0), "z": (270, 0), "a1": (90, 90), "b1": (180, 90)}
# Replicas with a choice take the first one, so that the node in use is known beforehand.
COSTS = {"a1": 3.0, "b1": 3.0}


class Trial(Struct, frozen=True):
    """``noticed``: when the sender's costs no longer had a way to the dead node."""

    seed: int
    level: str
    operator: str
    seconds: float
    noticed: float | None
    continued: bool
    trouble: tuple[str, ...]


def experiment(seed: int, backend: str) -> Experiment:
    draw = Random(f"failover/{seed}")
    operator, at = OPERATORS[seed // 2 % 2], round(draw.uniform(5.0, 7.0), 3)
    victim = {"operator": operator, "replica": 0}
    work = {"kind": "work", "cpu": "2 ms"}
    document: dict[str, Any] = {
        "name": "failover",
        "backend": backend,
        "topology": {
            "name": "two-ways",
            "nodes": list(POSITIONS),
            "area": "300 m x 100 m",
            "mobility": {"model": "static", "positions": {node: list(xy) for node, xy in POSITIONS.items()}},
            "costs": COSTS,
        },
        "routing": {"protocol": "olsr", "hello": 1.0, "hello_validity": HELLO_VALIDITY},
        "query": {
            "reliability": "best_effort" if seed % 2 else "exactly_once",
            "operators": {
                "source": {"kind": "synthetic_source", "rate": RATE, "payload": "500 B"},
                "first": {**work, "after": "source"},
                "second": {**work, "after": "first"},
                "sink": {"kind": "sink", "after": "second"},
            },
        },
        "replicas": 2,
        "placement": {"policy": "explicit", "nodes": PLACES},
        "duration": DURATION,
        "seed": seed,
        "faults": [{"at": at, "silence": victim}, {"at": at, "crash": victim}],
    }
    return described(document)


def trial(seed: int, backend: str, root: Path) -> Trial:
    asked = experiment(seed, backend)
    run = perform(asked, root, f"failover-{backend}-{seed}")
    events = parse_lines(run.directory.events.read_bytes())
    died_ns = next(event["t_ns"] for event in events if event["kind"] == "fault")
    target = asked.faults[0].target
    assert target is not None
    operator = str(target.part("query")["operator"])
    dead = f"{operator}/0"
    senders = [record for node in SENDERS[operator] for record in _records(run, node)]
    used = [r["t_ns"] for r in senders if r["kind"] == "tuple_sent" and r["to"] == dead]
    delivered = [r["t_ns"] for r in _records(run, "z") if r["kind"] == "tuple_delivered"]
    taken_over = [r["t_ns"] for r in _records(run, PLACES[operator][1]) if r["kind"] == "tuple_processed"]
    pauses = [after - before for before, after in pairwise(delivered) if after > died_ns]
    trouble = list(own_reasons(run))
    if not any(died_ns - 1_000_000_000 < t_ns <= died_ns for t_ns in used):
        trouble.append(f"{dead} was not in use when its node died")
    if leftovers(run):
        trouble.append("something was left behind")
    return Trial(
        seed,
        section(asked).dataflow().reliability,
        operator,
        max(pauses, default=0) / 1e9 - 1 / RATE,
        _noticed(senders, died_ns, dead),
        # Says whether the stream continued to the end: pauses before the last delivery are in ``seconds``.
        any(t_ns > died_ns for t_ns in taken_over) and delivered[-1] > died_ns + 5_000_000_000,
        tuple(trouble),
    )


def _records(run: FinishedRun, node: str) -> list[dict[str, Any]]:
    return list(read_records(run.directory.segments(node)))


def _noticed(senders: Sequence[dict[str, Any]], died_ns: int, dead: str) -> float | None:
    times = [r["t_ns"] for r in senders if r["kind"] == "link_cost" and r["to"] == dead and r["cost"] is None]
    return min(((t_ns - died_ns) / 1e9 for t_ns in times if t_ns > died_ns), default=None)


def figures(backend: str, trials: Sequence[Trial]) -> dict[str, float | int]:
    seconds = [each.seconds for each in trials]
    noticed = [each.noticed for each in trials if each.noticed is not None]
    return {
        f"{backend}_trials": len(trials),
        f"{backend}_seconds": max(seconds),
        f"{backend}_median_seconds": median(seconds),
        f"{backend}_routing_noticed_seconds": median(noticed) if noticed else -1.0,
        f"{backend}_stopped": sum(not each.continued for each in trials),
        f"{backend}_troubled": sum(bool(each.trouble) for each in trials),
    }


def measure(backends: Sequence[str], counts: dict[str, int], root: Path) -> dict[str, float | int | str]:
    found: dict[str, float | int | str] = {"benchmark": "failover"}
    worst = 0.0
    for backend in backends:
        trials = []
        for seed in range(counts[backend]):
            done = trial(seed, backend, root)
            trials.append(done)
            if done.trouble or not done.continued or done.seconds > LIMIT:
                print(f"{backend}: {done}", file=sys.stderr, flush=True)
        found |= figures(backend, trials)
        worst = max([worst, *(each.seconds for each in trials)])
    return found | {"seconds": worst, "detection_seconds": HELLO_VALIDITY, "limit_seconds": LIMIT}


def main() -> int:
    parser = argparse.ArgumentParser(description="failover: the node of the replica in use dies")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--backend", choices=tuple(TRIALS), help="only this one")
    parser.add_argument("--trials", type=int, help="of each backend")
    parser.add_argument("--keep", type=Path, help="keep the runs' directories here")
    arguments = parser.parse_args()
    backends = [arguments.backend] if arguments.backend else list(TRIALS)
    if os.geteuid() != 0 and "netns" in backends:
        print("without root there are no namespaces: virtual time only", file=sys.stderr)
        backends.remove("netns")
    counts = {backend: arguments.trials or TRIALS[backend] for backend in backends}
    with TemporaryDirectory(prefix="rove-failover-") as directory:
        found = measure(backends, counts, (arguments.keep or Path(directory)).resolve())
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"  {name:<32}{value:>12,.3f}" if isinstance(value, float) else f"  {name:<32}{value:>12}")
    bad = any(value for name, value in found.items() if name.endswith(("_stopped", "_troubled")))
    return 1 if bad or float(found["seconds"]) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
