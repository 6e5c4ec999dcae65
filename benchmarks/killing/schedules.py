"""Draws by seed which query runs, on which network, and whose agent is killed when."""

from pathlib import Path
from random import Random
from typing import Any

from benchmarks.killing.queries import RATE, SHAPES
from benchmarks.shared.runs import described
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import section

NODES = 10
TUPLES = 240
SETTLING = 12.0
"""Seconds after the last tuple in which late ones may arrive."""
POLICIES = ("shortest_path", "shortest_path", "round_robin", "weighted")


def schedule(seed: int, into: Path | None, kills: int | None = None, tuples: int = TUPLES) -> Experiment:
    """Draws a schedule. Sinks write to files in ``into``; None: nobody is killed, and nothing is written."""
    draw = Random(f"kills/{seed}")
    shape = draw.choice(SHAPES)
    document: dict[str, Any] = {
        "name": "kills",
        "backend": "netns",
        "topology": _topology(moving=draw.random() < 0.5),
        "routing": {"protocol": "olsr", "hello": "1s"},
        "query": {
            "python": "queries.py:build",
            "arguments": {"shape": shape, "limit": tuples, "into": str(into or "")},
        },
        "replicas": 2,
        "switching": {"policy": draw.choice(POLICIES), "period": draw.choice((0.5, 1.0, 2.0))},
        "duration": tuples / RATE + SETTLING,
        "seed": seed,
    }
    experiment = described(document, Path(__file__).parent)
    if into is None:
        return experiment
    inner = section(experiment).dataflow().inner()
    document["faults"] = _kills(draw, inner, kills or draw.randint(4, 8), tuples / RATE)
    return described(document, Path(__file__).parent)


def _topology(moving: bool) -> dict[str, Any]:
    """Returns a topology of several hops from end to end, in which no node is far from another."""
    walk = {"model": "random_waypoint", "speed": "1 m/s"}
    grid = {"model": "static", "grid": {"columns": 5, "spacing": "130 m"}}
    return {
        "name": "field",
        "nodes": NODES,
        "area": "450 m x 250 m" if moving else "660 m x 260 m",
        "mobility": walk if moving else grid,
    }


def _kills(draw: Random, operators: tuple[str, ...], count: int, within: float) -> list[dict[str, Any]]:
    """Draws kills. Each replica is back before it is killed again."""
    kills: list[dict[str, Any]] = []
    free_at: dict[tuple[str, int], float] = {}
    for at in sorted(draw.uniform(0.5, within) for _ in range(count)):
        at = round(at, 2)
        alive = [(o, r) for o in operators for r in (0, 1) if free_at.get((o, r), 0.0) < at]
        if not alive:
            continue
        operator, replica = draw.choice(alive)
        seconds = round(draw.uniform(0.5, 5.0), 2)
        free_at[operator, replica] = at + seconds + 0.5
        kills.append({"at": at, "for": seconds, "crash": {"operator": operator, "replica": replica}})
    return kills
