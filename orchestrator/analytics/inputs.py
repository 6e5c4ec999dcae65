"""What the analysis takes from a run directory besides the telemetry: manifest, verdict, fingerprint."""

import json
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.model.checked import Long
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular, segment_names
from orchestrator.analytics import schemas
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.clocks.correction import Pieces, clocks_in
from orchestrator.errors import BadInput
from orchestrator.runs.files import read_json, read_object
from orchestrator.runs.manifest import apps_in
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
LATEST_NS = 2**62
Time = Annotated[int, Meta(ge=0, le=LATEST_NS)]
PUNCTUALITY = ("deliveries", "late_ratio", "p99_us", "channel_lag_max_ms")
TRUTH = ("links.jsonl", "positions.jsonl", "deliveries.jsonl")


class _Facts(Struct):
    """What is taken from a manifest besides the plan and the clocks, as far as it is there."""

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
    galleries: dict[str, list[str]] | None = None


class Segment(NamedTuple):
    """``size``: None if it is no regular file."""

    node: str
    boot: int
    path: Path
    size: int | None

    def unread(self) -> int:
        """Lines that Spark passes over: they are too long. Of what is no file, one."""
        if self.size is None:
            return 1
        if self.size <= LONGEST_LINE:
            return 0
        with open_regular(self.path) as file:
            if _has_short_lines(file):
                return 0
            file.seek(0)
            return sum(line is None for line in lines_in(file))


@dataclass(frozen=True)
class RunInput:
    """One run that can be analysed: it has a manifest."""

    directory: RunDirectory
    manifest: dict[str, Any]
    verdict: dict[str, Any]
    plan: DeploymentPlan

    @property
    def run(self) -> str:
        return self.directory.id

    @property
    def factors(self) -> dict[str, Any]:
        return dict(self.manifest.get("factors") or {})

    @property
    def claimed_run(self) -> str:
        """What its records call the run; its directory may have been renamed."""
        return str(self.manifest.get("run") or self.run)

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

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """All that has a segment's name, also what cannot be read."""
        return tuple(_segments(self.directory.nodes))

    def truth(self, name: str) -> Path | None:
        """A file of the ground truth, if it is there."""
        path = self.directory.radio / name
        return path if not path.parent.is_symlink() and _size(path) is not None else None

    def recorded(self) -> list[Path]:
        """Telemetry and ground truth that can be read."""
        truth = (self.truth(name) for name in TRUTH)
        return [*(s.path for s in self.segments if s.size is not None), *(path for path in truth if path)]

    def punctuality(self) -> dict[str, Any] | None:
        """How late an emulated radio was; None where time is virtual."""
        found = read_object(self.directory.radio / "lateness.json")
        if not all(isinstance(found.get(name), int | float) for name in PUNCTUALITY):
            return None
        return {name: value for name, value in found.items() if name != "histogram"}

    def bytes(self) -> int:
        return sum(_size(path) or 0 for path in self.recorded())

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
        sources = [r for name in plan.query.sources() for r in plan.of(name)]
        sinks = [r for name in plan.query.sinks() for r in plan.of(name)]
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
        why = "it has no manifest.json that can be read (did the run end?)"
        raise BadInput(f"{directory.path} cannot be analysed: {why}")
    plan = next((deployment_in(app.document) for app in apps_in(manifest).values()), None)
    if plan is None:
        raise BadInput(
            f"{directory.path} cannot be analysed: manifest.json has no deployment plan, which says whose "
            "records can be believed"
        )
    try:
        msgspec.convert(manifest, _Facts)
    except msgspec.ValidationError as error:
        raise BadInput(f"{directory.path} cannot be analysed: manifest.json: {error}") from None
    return RunInput(directory, manifest, _verdict(directory), plan)


def _verdict(directory: RunDirectory) -> dict[str, Any]:
    """Empty where there is none that can be read: then the run is not judged."""
    document = read_object(directory.verdict)
    try:
        msgspec.convert(document, Verdict)
    except msgspec.ValidationError:
        return {}
    return document


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


def _segments(nodes: Path) -> Iterator[Segment]:
    if nodes.is_symlink() or not nodes.is_dir():
        return
    for place in sorted(nodes.iterdir()):
        if not place.name.isprintable():  # no node is called so, and Spark could not name it
            continue
        directory = place / "segments"
        for name in segment_names(directory):
            path = directory / str(name)
            yield Segment(place.name, name.boot, path, _size(path))


def _size(path: Path) -> int | None:
    """None if it is no regular file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _has_short_lines(file: BinaryIO) -> bool:
    """A line that is too long has no end in some half of that length; few files need a closer look."""
    while chunk := file.read(LONGEST_LINE // 2):
        if b"\n" not in chunk:
            return False
    return True


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
