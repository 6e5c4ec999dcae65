"""Two queries at once on the five nodes of the experiment ``line``: one from a to e, one back."""

from collections import Counter
from pathlib import Path
from typing import Any

from node_agent.telemetry.segments import read_records
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.experiment import SECTIONS
from tests.unit.rove_process import experiment_file

NODES = "abcde"
FAST, SLOW = "fast", "slow"
SINKS = {FAST: "e", SLOW: "a"}


def _app(rate: str, camera: str, screen: str, **changes: Any) -> dict[str, Any]:
    places = {"camera": [camera], "op1": ["c"], "screen": [screen]}
    query = {"name": "synthetic_chain", "operators": 1, "rate": rate}
    return {"query": query, "placement": {"policy": "explicit", "nodes": places}, **changes}


def two_queries(directory: Path, **changes: Any) -> Path:
    apps = {FAST: _app("20 fps", "a", "e"), SLOW: _app("5 fps", "e", "a", switching={"period": "1s"})}
    alone = dict.fromkeys(key for section in SECTIONS.values() for key in section.model_fields)
    return experiment_file(directory, without=alone, apps=apps, warmup="1s", **changes)


def delivered(run: RunDirectory) -> Counter[tuple[str, str]]:
    """Tuples by application and node."""
    counts: Counter[tuple[str, str]] = Counter()
    for node in NODES:
        for record in read_records(run.segments(node)):
            assert record["app"] in ("", FAST, SLOW)
            if record["kind"] == "tuple_delivered":
                counts[record["app"], node] += record.get("tuples") or 1
    return counts
