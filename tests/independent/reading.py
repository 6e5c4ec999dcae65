"""Reads a run directory: believed records of each boot, each once, in the orchestrator's time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.independent.believing import Record, is_believed, read_line
from tests.independent.plan import App, Query, read_apps

MOST_DRIFT = Fraction(500, 10**6)


@dataclass
class Boot:
    """What the files of one boot of a node hold. ``missing``: numbers below the last one that no record has;
    that of a corrupt line is missing, that of a refused record is not.
    """

    node: str
    boot: int
    records: list[Record]
    corrupt: int
    refused: int
    duplicates: int
    missing: int

    @property
    def is_complete(self) -> bool:
        kinds = {record["kind"] for record in self.records}
        return {"agent_start", "agent_stop"} <= kinds and not self.missing

    @property
    def is_flawless(self) -> bool:
        return self.is_complete and not self.corrupt + self.refused + self.duplicates

    @property
    def ended_in_order(self) -> bool:
        stops = [record["reason"] for record in self.records if record["kind"] == "agent_stop"]
        return bool(stops) and stops != ["killed by a fault"]


class Run:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest: dict[str, Any] = json.loads((directory / "manifest.json").read_text())
        self.run = self.manifest["run"]
        self.apps: dict[str, App] = read_apps(self.manifest)
        self.from_ns: int = self.manifest["measure_from_ns"]
        self.until_ns: int = self.manifest["measure_until_ns"]
        self.clocks = {
            node: _used(clock["samples"]) for node, clock in self.manifest.get("clocks", {}).items()
        }
        self.boots = [self._boot(*key, paths) for key, paths in sorted(self._segments().items())]
        times = [record["t_ns"] for boot in self.boots for record in boot.records]
        self.first_ns, self.ended_ns = min(times), max(times)

    @property
    def window_s(self) -> float:
        return (self.until_ns - self.from_ns) / 1e9

    def records(self, *kinds: str, app: str | None = None) -> list[Record]:
        return [
            record
            for boot in self.boots
            for record in boot.records
            if record["kind"] in kinds and app in (None, record["app"])
        ]

    def inside(self, t_ns: int | None) -> bool:
        return t_ns is not None and self.from_ns <= t_ns < self.until_ns

    def truth(self, name: str) -> list[dict[str, Any]] | None:
        path = self.directory / "radio" / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else None

    def ahead_ns(self, nodes: Sequence[str], shown_ns: int) -> int:
        """Returns how far the clock that showed this time was ahead; of several, the one most ahead."""
        return max((_ahead(self.clocks[node], shown_ns) for node in nodes if node in self.clocks), default=0)

    def _segments(self) -> dict[tuple[str, int], list[Path]]:
        found: dict[tuple[str, int], list[Path]] = {}
        for path in sorted(self.directory.glob("nodes/*/segments/b*-s*.jsonl")):
            found.setdefault((path.parent.parent.name, int(path.name[1:5])), []).append(path)
        return found

    def _boot(self, node: str, boot: int, paths: list[Path]) -> Boot:
        lines = [line for path in paths for line in path.read_bytes().removesuffix(b"\n").split(b"\n")]
        read = [read_line(line, boot) for line in lines]
        valid = [record for record in read if record is not None]
        believed = [record for record in valid if is_believed(record, self.run, node, self.apps)]
        once = {record["seq"]: record for record in believed}
        present = {record["seq"] for record in valid}
        missing = max(present) + 1 - len(present) if present else 0
        records = [self._corrected(record) for record in once.values()]
        corrupt, refused = len(read) - len(valid), len(valid) - len(believed)
        return Boot(node, boot, records, corrupt, refused, len(believed) - len(once), missing)

    def _corrected(self, record: Record) -> Record:
        app = self.apps.get(record["app"])
        times = {"t_ns": record["t_ns"] - self.ahead_ns([record["node"]], record["t_ns"])}
        if "born_ns" in record and isinstance(app, Query):
            sources = app.fed_by(record["origin"])
            times["born_ns"] = record["born_ns"] - self.ahead_ns(sources, record["born_ns"])
        return {**record, **times}


Sample = dict[str, int]


def _used(samples: list[Sample]) -> list[Sample]:
    """Returns the measurements without slow answers: those that tell less than their neighbours do."""
    used = [samples[0], samples[-1]]
    for sample in sorted(samples[1:-1], key=lambda each: each["uncertainty_ns"]):
        place = sum(each["at_ns"] < sample["at_ns"] for each in used)
        one, other = used[place - 1], used[place]
        moved = abs(other["offset_ns"] - one["offset_ns"])
        nearest = min(sample["at_ns"] - one["at_ns"], other["at_ns"] - sample["at_ns"])
        drift = MOST_DRIFT + Fraction(moved, other["at_ns"] - one["at_ns"])
        wander = min(drift * nearest, Fraction(moved))
        doubt = max(one["uncertainty_ns"], other["uncertainty_ns"]) + wander
        if sample["uncertainty_ns"] < doubt:
            used.insert(place, sample)
    return used


def _ahead(samples: list[Sample], shown_ns: int) -> int:
    """Interpolates between two measurements; before the first and after the last it is constant."""
    shown = [sample["at_ns"] + sample["offset_ns"] for sample in samples]
    offsets = [sample["offset_ns"] for sample in samples]
    if shown_ns <= shown[0]:
        return offsets[0]
    for place in range(1, len(samples)):
        if shown_ns < shown[place]:
            part = Fraction(shown_ns - shown[place - 1], shown[place] - shown[place - 1])
            return round(offsets[place - 1] + part * (offsets[place] - offsets[place - 1]))
    return offsets[-1]
