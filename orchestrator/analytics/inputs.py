"""What the analysis takes from a run directory besides the telemetry: manifest, verdict, fingerprint."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from node_agent.model.plan import DeploymentPlan
from orchestrator.analytics import schemas
from orchestrator.clocks.correction import Pieces, clocks_in
from orchestrator.errors import BadInput
from orchestrator.lifecycle.files import read_json
from orchestrator.lifecycle.run_directory import RunDirectory

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class RunInput:
    """One run that can be analysed: it has a manifest."""

    directory: RunDirectory
    manifest: dict[str, Any]
    verdict: dict[str, Any]

    @property
    def run(self) -> str:
        return self.directory.id

    @property
    def factors(self) -> dict[str, Any]:
        return dict(self.manifest.get("factors") or {})

    @cached_property
    def plan(self) -> DeploymentPlan | None:
        try:
            return msgspec.convert(self.manifest.get("plan"), DeploymentPlan)
        except msgspec.ValidationError:
            return None

    @cached_property
    def clocks(self) -> dict[str, Pieces]:
        """By node; empty where all have the orchestrator's clock."""
        return clocks_in(self.manifest)

    @property
    def is_usable(self) -> bool:
        """May its numbers enter a mean? Only if it was judged, and sound; to miss its own goal is no flaw."""
        judgement = self.verdict.get("verdict")
        if judgement != "failed":
            return bool(judgement == "valid")
        phases, expectations = (self.verdict.get(part) or [] for part in ("phases", "expectations"))
        went_well = bool(phases) and all(phase.get("outcome") == "ok" for phase in phases)
        return went_well and any(expectation.get("holds") is False for expectation in expectations)

    def recorded(self) -> list[Path]:
        """Telemetry and ground truth."""
        return [
            path
            for part in (self.directory.nodes, self.directory.radio)
            for path in sorted(part.rglob("*.jsonl"))
        ]

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.recorded())

    def fingerprint(self) -> str:
        """Changes when the telemetry, the ground truth, the manifest or the layout of the tables does.

        Not with the verdict, which may be given after the analysis and because of it.
        """
        directory = self.directory
        digest = sha256(f"{schemas.VERSION} {directory.experiment}/{directory.id}\n".encode())
        for path in self.recorded():
            status = path.stat()
            name = path.relative_to(directory.path)
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
        digest.update(json.dumps(self.manifest, sort_keys=True).encode())
        return digest.hexdigest()

    def judgement(self) -> dict[str, Any]:
        """The columns of its row that may change after the analysis."""
        reasons = [str(reason) for reason in self.verdict.get("reasons") or []]
        return {"verdict": self.verdict.get("verdict"), "reasons": reasons}

    def row(self) -> dict[str, Any]:
        """Its row of the ``runs`` table, as far as it does not come from the telemetry."""
        plan = self.plan
        sources = [r for name in plan.query.sources() for r in plan.of(name)] if plan else []
        sinks = [r for name in plan.query.sinks() for r in plan.of(name)] if plan else []
        manifest = self.manifest
        return {
            "run": self.run,
            "experiment": manifest.get("experiment", self.directory.experiment),
            "invocation": manifest.get("invocation"),
            "factors": {name: json.dumps(value) for name, value in self.factors.items()},
            "seed": manifest.get("seed"),
            "clock": manifest.get("clock"),
            **self.judgement(),
            "started": _moment(manifest.get("started")),
            "finished": _moment(manifest.get("finished")),
            "measure_from_ns": manifest.get("measure_from_ns"),
            "measure_until_ns": manifest.get("measure_until_ns"),
            "sources": [replica.id for replica in sources],
            "source_nodes": sorted({replica.node for replica in sources}),
            "sink_nodes": sorted({replica.node for replica in sinks}),
            "versions": {k: str(v) for k, v in (manifest.get("versions") or {}).items()},
        }


def read_run(directory: RunDirectory) -> RunInput:
    if not _PLAIN_NAME.fullmatch(directory.id):
        raise BadInput(
            f"{directory.path} cannot be analysed: a run is named with letters, digits, '.', '-', '_'"
        )
    manifest = read_json(directory.manifest)
    if not isinstance(manifest, dict):
        raise BadInput(f"{directory.path} cannot be analysed: it has no manifest.json (did the run end?)")
    verdict = read_json(directory.verdict)
    return RunInput(directory, manifest, verdict if isinstance(verdict, dict) else {})


def runs_in(directory: Path) -> list[RunInput]:
    """The run in ``directory``, or the runs of the sweep in it that got far enough to have a manifest."""
    found = RunDirectory(directory.resolve())
    if not found.is_sweep:
        return [read_run(found)]
    members = [read_run(member) for member in found.members() if member.manifest.is_file()]
    if not members:
        raise BadInput(f"{directory} cannot be analysed: none of its runs has a manifest.json")
    return members


def unique(runs: Sequence[RunInput]) -> list[RunInput]:
    """Each run once, in the order given."""
    return list({run.directory.path: run for run in runs}.values())


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
