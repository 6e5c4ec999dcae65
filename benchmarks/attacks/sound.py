"""Makes a sound run once; the liar's files are changed copies of it."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.shared.runs import described, perform
from orchestrator.planning.load import load_topology
from orchestrator.runs.run_directory import RunDirectory

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
EXPERIMENT: dict[str, Any] = {
    "name": "sound",
    "backend": "sim",
    "query": {
        "operators": {
            "camera": {"kind": "synthetic_source", "rate": "20 fps", "payload": "1 kB"},
            "detect": {"kind": "work", "after": "camera", "cpu": "5 ms"},
            "screen": {"kind": "sink", "after": "detect"},
        }
    },
    "placement": {"policy": "explicit", "nodes": {"camera": ["a"], "detect": ["b", "c"], "screen": ["d"]}},
    "replicas": 2,
    "warmup": "1s",
    "duration": "4s",
    "seed": 1,
}


@cache
def sound_run() -> Path:
    """Returns its directory. Call it before workers are forked, so that they share it."""
    root = Path(mkdtemp(prefix="rove-siege-sound-")) / "runs"
    topology = load_topology(TOPOLOGIES / "line-5.yaml").model_dump(mode="json")
    run = perform(described({**EXPERIMENT, "topology": topology}), root, "sound-1")
    assert run.verdict.verdict == "valid", run.verdict.reasons
    return run.directory.path


def remove_sound_run() -> None:
    shutil.rmtree(sound_run().parents[2], ignore_errors=True)
    sound_run.cache_clear()


def copy_of_sound_run(into: Path) -> RunDirectory:
    """Copies it to ``into/runs``."""
    sound = sound_run()
    copied = into / "runs" / sound.parent.name / sound.name
    shutil.copytree(sound, copied, symlinks=True)
    return RunDirectory(copied)
