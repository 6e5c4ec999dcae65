"""The Python API for notebooks and scripts, importable as ``rove``: see docs/notebooks.md.

import rove

with rove.load("runs/quickstart") as runs:
    print(runs.metrics()[["replicas", "seed", "goodput_fps"]])
    latencies = runs.pandas("tuples").query("in_window").latency_ns / 1e9
    print(rove.compare(runs))
"""

from orchestrator.api.comparing import ComparedRuns, compare
from orchestrator.api.runs import Runs, load
from orchestrator.errors import RoveError

__all__ = ["ComparedRuns", "RoveError", "Runs", "compare", "load"]
