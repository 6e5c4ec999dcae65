"""Performs a few real runs of different kinds in virtual time: what many run directories are copied from."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ROVE = (sys.executable, "-m", "orchestrator.cli.main")
RUN_TIMEOUT_S = 900

_MOVING = {
    "model": "random_waypoint",
    "speed": "10 m/s",
    "speed_spread": "1 m/s",
    "pause": "2 s",
    "pause_spread": "1 s",
}
_FIELD = {"name": "field", "nodes": 25, "area": "1200 m x 1200 m", "mobility": _MOVING}
_OLSR = {"protocol": "olsr", "metric": "etx"}
_TWO_SINKS = {
    "operators": {
        "left": {"kind": "synthetic_source", "rate": "12 fps", "payload": "600 B"},
        "right": {"kind": "synthetic_source", "rate": "8 fps", "payload": "400 B"},
        "any": {"kind": "union", "after": ["left", "right"]},
        "timed": {"kind": "work", "after": "any", "window": {"time": "1s", "slide": "500 ms"}},
        "one": {"kind": "sink", "after": "any"},
        "other": {"kind": "sink", "after": "timed"},
    },
}
_FLOWS = [
    {"pairs": 6, "protocol": "udp", "rate": "64 kb/s", "size": "512 B"},
    {"from": "n01", "to": "n12", "protocol": "tcp", "bytes": "200 kB", "size": "1000 B", "name": "file"},
]


class Pattern(NamedTuple):
    """A kind of run. ``weight``: how many of every 8 copies are of this kind."""

    name: str
    weight: int
    document: dict[str, Any]


PATTERNS = (
    Pattern(
        "saturated",
        5,
        {
            "topology": _FIELD,
            "routing": _OLSR,
            "query": {"name": "synthetic_chain", "operators": 2, "rate": "30 fps", "payload": "10 kB"},
            "replicas": 3,
            "placement": {"policy": "random"},
            "switching": {"policy": "shortest_path"},
            "warmup": "10s",
            "duration": "90s",
        },
    ),
    Pattern(
        "several",
        2,
        {
            "topology": {**_FIELD, "nodes": 12, "area": "700 m x 700 m"},
            "routing": _OLSR,
            "apps": {
                "chain": {
                    "query": {
                        "name": "synthetic_chain",
                        "operators": 1,
                        "rate": "15 fps",
                        "payload": "2 kB",
                        "cpu": "4 ms",
                    },
                    "replicas": 2,
                },
                "sinks": {"query": _TWO_SINKS, "replicas": 1},
                "load": {"flows": _FLOWS},
            },
            "faults": [
                {"at": "20s", "for": "4s", "crash": {"app": "chain", "operator": "op1", "replica": 0}}
            ],
            "warmup": "10s",
            "duration": "60s",
        },
    ),
    Pattern(
        "flows",
        1,
        {
            "topology": _FIELD,
            "routing": _OLSR,
            "flows": [{"pairs": 12, "protocol": "udp", "rate": "16384 b/s", "size": "512 B"}],
            "warmup": "20s",
            "duration": "80s",
        },
    ),
)


def perform(pattern: Pattern, folder: Path) -> Path:
    """Runs it by the command line, without analysis, unless it is there; returns the run's directory."""
    runs, run_id = folder / "patterns", f"pattern-{pattern.name}"
    found = runs / pattern.name / run_id
    if (found / "verdict.json").exists():
        return found
    file = folder / f"{pattern.name}.yaml"
    file.write_text(json.dumps({"name": pattern.name, "backend": "sim", "seed": 1, **pattern.document}))
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    options = ("--no-analyze", "--jobs", "1", "--run-id", run_id, "--runs-dir", str(runs))
    done = subprocess.run(
        [*ROVE, "run", str(file), *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    if done.returncode:
        raise SystemExit(f"{pattern.name}: rove run exited with {done.returncode}\n{done.stdout}")
    return found
