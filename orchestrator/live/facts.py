"""What is fixed for a whole run and needed to follow it: read from manifest.json and spec.yaml as plain data.

The files may be somebody else's: no code that they name is imported, and what does not fit is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from node_agent.apps.records import record_format
from node_agent.telemetry.belief import Writer, writers
from orchestrator.clocks.correction import Pieces, clocks_in
from orchestrator.errors import BadInput
from orchestrator.host_load.judgement import LIMITS, Limits
from orchestrator.lifecycle.examination import examiners_of
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import RecordedApp, apps_in, span_ns
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.backends import Traits, traits_of
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.yaml_source import read_document

MOST_NODES = 1000
LATEST_NS = 2**62
"""Times are not later, and not as long before 0: sums and differences of two stay below 64 bits."""


@dataclass(frozen=True)
class RunFacts:
    """Times in nanoseconds of the run's own clock. ``measure``: the measured window, once it is recorded."""

    run: str = ""
    experiment: str = ""
    backend: str = ""
    traits: Traits = field(default_factory=Traits)
    virtual: bool = False
    seed: int | None = None
    factors: dict[str, Any] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    area: tuple[float, float] | None = None
    started: str = ""
    started_ns: int | None = None
    warmup_s: float = 0.0
    duration_s: float = 0.0
    measure: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    apps: dict[str, RecordedApp] = field(default_factory=dict)
    writers: dict[str, Writer] = field(default_factory=dict)
    clocks: dict[str, Pieces] = field(default_factory=dict)
    limits: Limits = LIMITS
    quorum: float = 1.0
    has_signals: bool = True
    """Whether signal-to-noise ratios mean anything: within a disc every frame is received."""
    switching: dict[str, str] = field(default_factory=dict)
    """By application, the name of its switching policy."""

    @property
    def verdict_limits(self) -> dict[str, float]:
        """What the verdict allows, in the units in which the page gets what was measured."""
        from orchestrator.backends.netns.radio.lateness import MOST_LATE

        return {
            "delay_ms": self.limits.delay_ms,
            "waited": self.limits.waited,
            "late_ms": self.limits.late_ms,
            "late_ratio": MOST_LATE,
            "uncertainty_ms": self.limits.clock_ms,
        }


UNPLANNED = RunFacts()


def read_facts(directory: RunDirectory) -> RunFacts | None:
    """Returns None while the run has no plan that can be read."""
    manifest = read_object(directory.manifest)
    apps = apps_in(manifest)
    if not apps:
        return None
    spec = _spec(directory)
    nodes = _nodes(spec) or _nodes_in(apps)
    run = str(manifest.get("run") or directory.id)
    scopes = {name: examiner.scopes for name, examiner in examiners_of(apps).items()}
    try:
        clocks = clocks_in(manifest)
    except BadInput:
        clocks = {}
    backend = str(manifest.get("backend") or "")
    begin, end = (time_ns(manifest.get(name)) for name in ("measure_from_ns", "measure_until_ns"))
    started = str(manifest.get("started") or "")
    seed = manifest.get("seed")
    factors = manifest.get("factors")
    return RunFacts(
        run=run,
        experiment=str(manifest.get("experiment") or directory.experiment),
        backend=backend,
        traits=traits_of(backend),
        virtual=manifest.get("clock") == "virtual",
        seed=seed if isinstance(seed, int) else None,
        factors=dict(factors) if isinstance(factors, dict) else {},
        nodes=nodes,
        area=_area(_at(spec, "topology", "area")),
        started=started,
        started_ns=moment_ns(started),
        warmup_s=number(spec.get("warmup"), 0.0),
        duration_s=number(spec.get("duration"), 0.0),
        measure=(begin, end) if begin is not None and end is not None else None,
        span=_span(manifest),
        apps=apps,
        writers=writers(run, nodes, record_format(), scopes) if scopes else {},
        clocks=clocks,
        limits=Limits(
            delay_ms=number(_at(spec, "load", "delay"), LIMITS.delay_ms / 1e3) * 1e3,
            waited=number(_at(spec, "load", "waited"), LIMITS.waited),
            late_ms=number(_at(spec, "load", "late"), LIMITS.late_ms / 1e3) * 1e3,
            clock_ms=number(_at(spec, "clocks", "uncertainty"), LIMITS.clock_ms / 1e3) * 1e3,
        ),
        quorum=number(spec.get("quorum"), 1.0),
        has_signals=_at(spec, "topology", "radio", "model") != "disc",
        switching=_policies(spec, apps),
    )


def time_ns(value: Any) -> int | None:
    """Returns a time in nanoseconds that a file may have; None if it is none that can be used."""
    usable = isinstance(value, int) and not isinstance(value, bool) and -LATEST_NS <= value <= LATEST_NS
    return value if usable else None


def _span(manifest: Mapping[str, Any]) -> tuple[int, int] | None:
    span = span_ns(manifest)
    return span if span is not None and None not in map(time_ns, span) else None


def moment_ns(text: Any) -> int | None:
    """Returns the time of an event in nanoseconds since the epoch; None if it is no time with a zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return None
        return time_ns(round(moment.timestamp() * 1000) * 1_000_000)
    except (TypeError, ValueError, OverflowError):
        return None


def _spec(directory: RunDirectory) -> dict[str, Any]:
    try:
        document = read_document(directory.spec).value
    except BadSpec:
        return {}
    return document if isinstance(document, dict) else {}


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _nodes(spec: Mapping[str, Any]) -> tuple[str, ...]:
    named = _at(spec, "topology", "nodes")
    if isinstance(named, int) and 0 < named <= MOST_NODES:
        width = max(2, len(str(named)))
        return tuple(f"n{number:0{width}}" for number in range(1, named + 1))
    if not isinstance(named, list):
        return ()
    return tuple(node for node in named[:MOST_NODES] if is_node_name(node))


def _nodes_in(apps: Mapping[str, RecordedApp]) -> tuple[str, ...]:
    """Returns the nodes that applications run on: all that is known without the experiment."""
    found = {node for examiner in examiners_of(apps).values() for node in examiner.scopes.scopes}
    return tuple(sorted(filter(is_node_name, found)))[:MOST_NODES]


def is_node_name(name: Any) -> bool:
    """Whether ``name`` can be the name of a node's directory, and of nothing outside."""
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
        return False
    return "/" not in name and "\\" not in name and name not in (".", "..")


def _area(text: Any) -> tuple[float, float] | None:
    from orchestrator.spec.area import _read_area
    from orchestrator.spec.problems import Unusable

    try:
        area = _read_area(text)
    except (Unusable, ValueError, TypeError):
        return None
    return (area.width, area.height)


def number(value: Any, default: float) -> float:
    """Returns a number that a file may have; ``default`` if it is none that can be used."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    return default


def _policies(spec: Mapping[str, Any], apps: Mapping[str, RecordedApp]) -> dict[str, str]:
    found = {}
    for name in apps:
        section = _at(spec, "apps", name) if isinstance(_at(spec, "apps", name), dict) else spec
        policy = _at(section, "switching", "policy")
        if isinstance(policy, str):
            found[name] = policy[:200]
    return found
