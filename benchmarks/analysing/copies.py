"""Makes a sweep of many runs from a few: copies under other names and seeds, as large as real ones.

Every record of a copy names its own run. Ground truth names no run, so it is copied as it is.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

EXPERIMENT, SWEEP = "copies", "20260301-120000-copy"
_BESIDE = ("spec.yaml", "events.jsonl", "verdict.json", "journal.jsonl")


class Original(NamedTuple):
    """A run to copy. ``weight``: how many copies of it are made in each round."""

    kind: str
    weight: int
    directory: Path

    def records(self) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.segments())

    def segments(self) -> list[Path]:
        return sorted(self.directory.glob("nodes/*/segments/*.jsonl"))


class Copies(NamedTuple):
    """A sweep's directory; its runs, records and bytes (with ground truth)."""

    sweep: Path
    runs: int
    records: int
    bytes: int


def make_copies(originals: Sequence[Original], root: Path, records: int) -> Copies:
    """Makes runs below ``root`` until they have at least so many records."""
    counted = {original: original.records() for original in originals}
    turn = [original for original in originals for _ in range(original.weight)]
    members: list[str] = []
    made = size = 0
    while made < records:
        original = turn[len(members) % len(turn)]
        name = f"{SWEEP}.{len(members) + 1:05d}"
        size += _copy(original, root / EXPERIMENT / name, len(members) // len(turn) + 1)
        members.append(name)
        made += counted[original]
    sweep = root / EXPERIMENT / SWEEP
    sweep.mkdir(parents=True)
    for file, document in (
        (
            "sweep.json",
            {"id": SWEEP, "experiment": EXPERIMENT, "members": members, "factors": ["kind", "seed"]},
        ),
        ("verdict.json", {"verdict": "valid", "reasons": []}),
    ):
        (sweep / file).write_text(json.dumps(document))
    (sweep / "journal.jsonl").write_text("")
    (sweep / "spec.yaml").write_text(f"name: {EXPERIMENT}\n")
    return Copies(sweep, len(members), made, size)


def _copy(original: Original, target: Path, seed: int) -> int:
    """Returns the bytes of telemetry and ground truth."""
    source, size = original.directory, 0
    manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text())
    old, new = (f'{{"run":"{name}",'.encode() for name in (manifest["run"], target.name))
    for segment in original.segments():
        lines = segment.read_bytes().replace(old, new)
        path = target / segment.relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines)
        size += len(lines)
    shutil.copytree(source / "radio", target / "radio")
    size += sum(path.stat().st_size for path in (target / "radio").iterdir())
    for name in _BESIDE:
        if (source / name).exists():
            shutil.copy(source / name, target)
    manifest |= {
        "run": target.name,
        "invocation": SWEEP,
        "experiment": EXPERIMENT,
        "seed": seed,
        "factors": {"kind": original.kind, "seed": seed},
    }
    (target / "manifest.json").write_text(json.dumps(manifest))
    return size
