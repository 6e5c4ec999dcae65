"""Measures at the screen how long frames stop while a recogniser with a gallery of 50 MB moves.

A camera sends made-up scenes through detection and recognition to a screen, over five nodes with cables
between them (``--radio``: over a radio channel of 11 Mb/s). The recogniser moves to another node live, and
later back by stop-and-copy, in the same run. ``…_gap_ms``: the longest time between two deliveries while it
moves and in the second after; ``…_handover_ms``: the one around the hand-over; ``usual_gap_ms``: the median
of the run; ``worst_usual_gap_ms``: the longest while nothing moves. ``lost``, ``duplicated``, ``reordered``:
frames at the screen. The gallery is made here: the scene's people, and embeddings of nobody.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.shared.runs import described, leftovers, own_reasons, perform
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.faces import lbph
from node_agent.apps.dataflow.faces.gallery import EMBEDDING, Gallery, sample, save_gallery
from node_agent.apps.dataflow.faces.scene_gallery import scene_gallery
from node_agent.telemetry.segments import read_records
from orchestrator.lifecycle.invocation import FinishedRun
from orchestrator.spec.experiment import Experiment

MEGABYTES = 50
PERSONS, ENROLLED = 4, 2
SETTLE_S = 10.0
METHODS = ("live", "stop_and_copy")
NODES = ["n1", "n2", "n3", "n4", "n5"]
PLACES = {"camera": ["n1"], "detect": ["n2"], "recognise": ["n3"], "screen": ["n5"]}
TARGET = "n4"
AFTERWARDS_NS = 1_000_000_000


def big_gallery(megabytes: float) -> Gallery:
    """The people of the scene, and as many pictures of nobody as that takes."""
    drawn = np.random.default_rng(1)
    known = scene_gallery(PERSONS, ENROLLED)
    each = len(known.encode()) / max(1, len(known.samples))
    strangers = []
    for number in range(max(0, int(megabytes * 1e6 / each) - len(known.samples))):
        embedding = drawn.normal(size=EMBEDDING).astype(np.float32)
        histogram = drawn.integers(0, 9, lbph.LENGTH).astype(np.uint8)
        strangers.append(sample(f"nobody {number}", embedding / np.linalg.norm(embedding), histogram))
    return known.add(strangers)


def experiment(backend: str, gallery: Path, rate: float, cable: str, seconds: float) -> Experiment:
    """``cable``: its rate; empty: there is none."""
    query = {"name": "face_recognition", "rate": rate, "persons": PERSONS, "enrolled": ENROLLED}
    return described(
        {
            "name": "migration-gap",
            "backend": backend,
            "topology": {
                "name": "five",
                "nodes": NODES,
                "area": "50 m x 50 m",
                "mobility": {"model": "static", "scatter": True},
                "radio": {"model": "disc", "range": "200 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
                "wires": [{"between": NODES, "rate": cable, "latency": "1 ms"}] if cable else [],
            },
            "routing": "ground_truth",
            "query": {**query, "at_once": 1, "gallery": str(gallery), "keep": 0},
            "placement": {"policy": "explicit", "nodes": PLACES},
            "migrations": [
                {"at": SETTLE_S, "operator": "recognise", "to": TARGET},
                {
                    "at": SETTLE_S + seconds,
                    "operator": "recognise",
                    "to": PLACES["recognise"][0],
                    "method": "stop_and_copy",
                },
            ],
            "duration": SETTLE_S + 2 * seconds,
        },
        gallery.parent,
    )


def figures(run: FinishedRun) -> dict[str, float | int]:
    nodes = sorted(path.name for path in run.directory.nodes.iterdir())
    records = [r for node in nodes for r in read_records(run.directory.segments(node))]
    steps = [record for record in records if record["kind"] == "migration"]
    each = sorted(tuple_by_tuple(records), key=lambda record: record["t_ns"])
    arrived = [(r["t_ns"], r["tau"]) for r in each if r["kind"] == "tuple_delivered"]
    emitted = {r["tau"] for r in each if r["kind"] == "tuple_emitted"}
    shed = {r["tau"] for r in each if r["kind"] == "tuple_dropped"}
    spans = {number: _span(steps, number) for number in (1, 2)}
    gaps = [(after - before, before, after) for (before, _), (after, _) in pairwise(arrived)]
    moving: dict[int, int] = {
        number: max((gap for gap, before, after in gaps if after > since and before < until), default=0)
        for number, (since, until) in spans.items()
    }
    still = [gap for gap, a, b in gaps if all(b <= since or a >= until for since, until in spans.values())]
    found: dict[str, float | int] = {
        "usual_gap_ms": median(gap for gap, *_ in gaps) / 1e6,
        "worst_usual_gap_ms": max(still, default=0) / 1e6,
    }
    for number, method in enumerate(METHODS, 1):
        since, until = spans[number]
        own = [step for step in steps if step["migration"] == number]
        took_over = next(step["t_ns"] for step in own if step["step"] == "took_over")
        found |= {
            f"{method}_gap_ms": moving[number] / 1e6,
            f"{method}_handover_ms": next((gap for gap, _, at in gaps if at > took_over), 0) / 1e6,
            f"{method}_seconds": (until - AFTERWARDS_NS - since) / 1e9,
            f"{method}_copied_mb": sum(s["size"] for s in own if s["step"] == "took_over") / 1e6,
        }
    return found | at_the_screen([tau for _, tau in arrived], emitted - shed) | {"shed": len(shed)}


def at_the_screen(taus: Sequence[int], emitted: set[int]) -> dict[str, int]:
    """What is after the last delivery was under way at the end."""
    last = max(taus, default=0)
    return {
        "delivered": len(taus),
        "lost": len({tau for tau in emitted if tau < last} - set(taus)),
        "duplicated": len(taus) - len(set(taus)),
        "reordered": sum(one > other for one, other in pairwise(taus)),
    }


def _span(steps: Sequence[Mapping[str, Any]], number: int) -> tuple[int, int]:
    """From the order of a migration to a second after its end."""
    own = [step for step in steps if step["migration"] == number]
    ordered = min(step["t_ns"] for step in own if step["step"] == "ordered")
    moved = [step["t_ns"] for step in own if (step["step"], step["detail"]) == ("finished", "moved")]
    if not moved:
        raise SystemExit(f"migration {number} did not come to its end: {[s['step'] for s in own]}")
    return ordered, max(moved) + AFTERWARDS_NS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--backend", choices=("netns", "sim"), default="netns")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="of the gallery (at most 64)")
    parser.add_argument("--rate", type=float, default=5.0, help="frames a second")
    parser.add_argument("--cable", default="100 Mb/s", help="rate of the cables")
    parser.add_argument("--radio", action="store_true", help="a radio channel in place of the cables")
    parser.add_argument("--seconds", type=float, default=40.0, help="for each migration")
    parser.add_argument("--keep", type=Path, help="keep the run's directory here")
    options = parser.parse_args()
    if options.backend == "netns" and os.geteuid() != 0:
        print("without root there are no namespaces: use --backend sim", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="rove-migration-gap-") as directory:
        gallery = Path(directory).resolve() / "big.gallery"
        save_gallery(big_gallery(options.megabytes), gallery)
        cable = "" if options.radio else options.cable
        asked = experiment(options.backend, gallery, options.rate, cable, options.seconds)
        run = perform(asked, (options.keep or Path(directory)).resolve(), f"migration-gap-{options.backend}")
        found: dict[str, Any] = {"benchmark": "migration_gap", "backend": options.backend}
        found |= {"gallery_mb": gallery.stat().st_size / 1e6, **figures(run)}
    trouble = [*own_reasons(run), *(["something was left behind"] if leftovers(run) else [])]
    busy = [reason for reason in run.verdict.reasons if reason not in trouble]
    for reason in (*trouble, *busy):
        print(reason, file=sys.stderr)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"  {name:<24}{value:>14,.1f}" if isinstance(value, float) else f"  {name:<24}{value:>14}")
    return 1 if trouble or found["lost"] or found["duplicated"] or found["reordered"] else 0


if __name__ == "__main__":
    sys.exit(main())
