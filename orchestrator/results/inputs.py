"""Reads what the analysis needs from a run directory besides the telemetry:
manifest, verdict, fingerprint.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from node_agent.model.checked import Long
from orchestrator.clocks.correction import Pieces, clocks_in
from orchestrator.errors import BadInput
from orchestrator.results import registry
from orchestrator.results.contribution import Ends, PlanReader
from orchestrator.results.segments import Segment, segments_in, size_of
from orchestrator.results.truth import TRUTH
from orchestrator.runs.files import read_json, read_object
from orchestrator.runs.manifest import FIRST, apps_in
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
LATEST_NS = 2**62
Time = Annotated[int, Meta(ge=0, le=LATEST_NS)]
PUNCTUALITY = ("deliveries", "late_ratio", "p99_us", "channel_lag_max_ms")


OLD_NAME = OLD_KIND = FIRST
"""The application's name in old runs, which had only one."""


class _AppFacts(Struct):
    kind: str


class _Facts(Struct):
    """Facts that are read from a manifest besides the plan and the clocks, as far as they are there."""

    run: str | None = None
    experiment: str | None = None
    invocation: str | None = None
    factors: dict[str, Any] | None = None
    seed: Long | None = None
    clock: str | None = None
    backend: str | None = None
    started: datetime | None = None
    finished: datetime | None = None
    measure_from_ns: Time | None = None
    measure_until_ns: Time | None = None
    versions: dict[str, str | None] | None = None
    apps: dict[str, _AppFacts] | None = None


@dataclass(frozen=True)
class AppInput:
    """One application of a run. ``document`` is its entry in the manifest, ``plan`` the plan in that."""

    name: str
    kind: str
    document: Mapping[str, Any]
    plan: Any
    reader: PlanReader

    @cached_property
    def ends(self) -> Ends:
        return self.reader.ends(self.plan)

    @cached_property
    def places(self) -> Mapping[str, Sequence[str]]:
        """Returns the names of what runs on each node."""
        return self.reader.places(self.plan)


@dataclass(frozen=True)
class RunInput:
    """One run that can be analysed: it has a manifest."""

    directory: RunDirectory
    manifest: dict[str, Any]
    verdict: dict[str, Any]
    apps: Mapping[str, AppInput]

    @property
    def run(self) -> str:
        return self.directory.id

    @property
    def factors(self) -> dict[str, Any]:
        return dict(self.manifest.get("factors") or {})

    @property
    def claimed_run(self) -> str:
        """Returns the run's name in its records; its directory may have been renamed."""
        return str(self.manifest.get("run") or self.run)

    @cached_property
    def clocks(self) -> dict[str, Pieces]:
        """Returns clocks by node; empty if all nodes use the orchestrator's clock."""
        return clocks_in(self.manifest)

    @property
    def is_usable(self) -> bool:
        """Says whether its numbers may enter a mean: only if it was judged and is sound, and nobody changed
        the network by hand. A failed expectation does not matter.
        """
        if self.verdict.get("interventions"):
            return False
        judgement = self.verdict.get("verdict")
        if judgement != "failed":
            return bool(judgement == "valid")
        phases, expectations = (self.verdict.get(part) or [] for part in ("phases", "expectations"))
        went_well = bool(phases) and all(phase.get("outcome") == "ok" for phase in phases)
        return went_well and any(expectation.get("holds") is False for expectation in expectations)

    @cached_property
    def places(self) -> dict[str, list[str]]:
        """Returns the names of what runs on each node, of all applications."""
        found: dict[str, list[str]] = {}
        for app in self.apps.values():
            for node, names in app.places.items():
                shown = names if len(self.apps) == 1 else [f"{app.name}: {name}" for name in names]
                found.setdefault(node, []).extend(shown)
        return found

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Returns everything with a segment's name, even if it cannot be read."""
        return tuple(segments_in(self.directory.nodes))

    def truth(self, name: str) -> Path | None:
        """Returns a file of the ground truth, if it is there."""
        path = self.directory.radio / name
        return path if not path.parent.is_symlink() and size_of(path) is not None else None

    def recorded(self) -> list[Path]:
        """Returns the readable files of telemetry and ground truth."""
        truth = (self.truth(name) for name in TRUTH)
        return [*(s.path for s in self.segments if s.size is not None), *(path for path in truth if path)]

    def punctuality(self) -> dict[str, Any] | None:
        """Returns how late an emulated radio was; None in virtual time."""
        found = read_object(self.directory.radio / "lateness.json")
        if not all(isinstance(found.get(name), int | float) for name in PUNCTUALITY):
            return None
        return {name: value for name, value in found.items() if name != "histogram"}

    def bytes(self) -> int:
        return sum(size_of(path) or 0 for path in self.recorded())

    def fingerprint(self, layout: str) -> str:
        """Returns a digest that changes with the telemetry, the ground truth, the manifest or the ``layout``
        of tables.

        It does not change with the verdict, which may be decided after the analysis and because of it.
        """
        directory = self.directory
        digest = sha256(f"{layout} {directory.experiment}/{directory.id}\n".encode())
        for path in self.recorded():
            status = path.stat()
            name = path.relative_to(directory.path)
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
        digest.update(json.dumps(self.manifest, sort_keys=True).encode())
        return digest.hexdigest()

    def judgement(self) -> dict[str, Any]:
        """Returns the columns of its row that may change after the analysis."""
        reasons = [str(reason) for reason in self.verdict.get("reasons") or []]
        return {"verdict": self.verdict.get("verdict"), "reasons": reasons}

    def row(self) -> dict[str, Any]:
        """Returns its row of the ``runs`` table, without the columns that come from the telemetry."""
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
            "versions": {k: str(v) for k, v in (manifest.get("versions") or {}).items()},
        }


def read_run(directory: RunDirectory) -> RunInput:
    if not _PLAIN_NAME.fullmatch(directory.id):
        raise BadInput(
            f"{directory.path} cannot be analysed: a run is named with letters, digits, '.', '-', '_'"
        )
    manifest = read_json(directory.manifest)
    if not isinstance(manifest, dict):
        why = "it has no manifest.json that can be read (did the run end?)"
        raise BadInput(f"{directory.path} cannot be analysed: {why}")
    try:
        msgspec.convert(manifest, _Facts)
    except msgspec.ValidationError as error:
        raise BadInput(f"{directory.path} cannot be analysed: manifest.json: {error}") from None
    return RunInput(directory, manifest, _verdict(directory), _apps(directory, manifest))


def _apps(directory: RunDirectory, manifest: Mapping[str, Any]) -> dict[str, AppInput]:
    found = {}
    for name, kind, document in apps_in(manifest).values():
        reader = registry.reader_of(kind)
        if reader is None:
            raise BadInput(
                f"{directory.path} cannot be analysed: nothing that is installed here knows applications of "
                f"kind {kind!r}, as {name!r} is"
            )
        plan = reader.plan(document)
        if plan is None:
            raise BadInput(
                f"{directory.path} cannot be analysed: manifest.json has no deployment plan of "
                f"{name!r}, which says whose records can be believed"
            )
        found[name] = AppInput(name, kind, document, plan, reader)
    if not found:
        raise BadInput(
            f"{directory.path} cannot be analysed: manifest.json has no deployment plan, which says whose "
            "records can be believed"
        )
    return found


def _verdict(directory: RunDirectory) -> dict[str, Any]:
    """Returns the verdict; empty if none can be read, so that the run counts as not judged."""
    document = read_object(directory.verdict)
    try:
        msgspec.convert(document, Verdict)
    except msgspec.ValidationError:
        return {}
    return document


def runs_in(directory: Path) -> list[RunInput]:
    """Returns the run in ``directory``, or the runs of the sweep in it that have a manifest."""
    found = RunDirectory(directory.resolve())
    if not found.is_sweep:
        return [read_run(found)]
    members = [read_run(member) for member in found.members() if member.manifest.is_file()]
    if not members:
        raise BadInput(f"{directory} cannot be analysed: none of its runs has a manifest.json")
    return members


def unique(runs: Sequence[RunInput]) -> list[RunInput]:
    """Returns each run once, in the order given."""
    return list({run.directory.path: run for run in runs}.values())


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
