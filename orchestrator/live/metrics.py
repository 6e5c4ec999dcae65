"""Lists every metric that a run reports while it goes on: name, type, unit, labels and help, each once.

A node's agent reports its own metrics and those of its applications; the orchestrator reports on the run.
Exposition, rules, dashboards, the export and the table in ``docs/live.md`` are made from this list:

    metrics()["rove_queue_length"].labels     # ("app", "replica", "queue")
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from node_agent.agent.metrics import AGENT_METRIC_KINDS, READINGS
from node_agent.apps.registry import APPLICATIONS
from node_agent.extensions import ExtensionError
from node_agent.telemetry.metrics import Metric, MetricKind
from orchestrator.runs.phases import Phase
from orchestrator.runs.verdict import Judgement

TARGET_LABELS = ("run", "experiment", "seed", "k", "backend")
"""What tells runs apart. Prometheus adds them to every sample, and ``node`` to those of a node."""
NODE = "node"
APP = "app"
AGENT, RUN = "agent", "run"
"""Reporters besides kinds of applications: a node's agent, and the orchestrator."""

RUN_INFO = "rove_run_info"
RUN_TIME = "rove_run_time_seconds"
RUN_PHASE = "rove_run_phase"
RUN_VERDICT = "rove_run_verdict"
RUN_DOUBTS = "rove_run_doubts"
FAULTS_INJECTED = "rove_faults_injected_total"
NODE_UP = "rove_node_up"
NODE_STATE = "rove_node_state"
NODE_AGE = "rove_node_age_seconds"
CLOCK_OFFSET = "rove_clock_offset_seconds"
CLOCK_UNCERTAINTY = "rove_clock_uncertainty_seconds"
CLOCK_BOUND = "rove_clock_bound_seconds"
RADIO_ATTEMPTED = "rove_radio_frames_attempted_total"
RADIO_DELIVERED = "rove_radio_frames_delivered_total"
RADIO_LATE = "rove_radio_late_ratio"
RADIO_LATENESS = "rove_radio_lateness_p99_seconds"
HOST_DELAY = "rove_host_delay_seconds"
HOST_DELAY_LIMIT = "rove_host_delay_limit_seconds"
HOST_WAITED = "rove_host_waited_ratio"
HOST_LATE = "rove_host_late_seconds"
HOST_WAITED_LIMIT = "rove_host_waited_limit_ratio"
HOST_LATE_LIMIT = "rove_host_late_limit_seconds"
QUERY_WINDOWS = "rove_query_windows_seconds"
RECORDS_READ = "rove_records_read_total"
BOOT_READ = "rove_boot_read"
BOOT_RECORDS_READ = "rove_boot_records_read_total"
BYTES_READ = "rove_records_read_bytes_total"
RECORDS_REFUSED = "rove_records_refused_total"
SAMPLES_REFUSED = "rove_samples_refused"
RUNS_WATCHED = "rove_runs_watched"

NODE_STATES = ("ok", "failed", "unreachable", "crashed", "silent", "ended")
_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE
_PER_NODE = (NODE,)
_PER_MACHINE = ("machine",)
_MACHINE = "a machine (none is named where all nodes are on this one)"

RUN_METRICS = (
    Metric(RUN_INFO, _GAUGE, "A run that is watched; always 1. clock: real or virtual.", ("clock",)),
    Metric(RUN_TIME, _GAUGE, "Time since the first record of the run.", unit="seconds"),
    Metric(
        RUN_PHASE,
        _GAUGE,
        f"The phase that the run is in; always 1. phase: {', '.join(Phase)}.",
        ("phase",),
    ),
    Metric(
        RUN_VERDICT,
        _GAUGE,
        f"The verdict, once there is one; always 1. verdict: {', '.join(Judgement)}.",
        ("verdict",),
    ),
    Metric(RUN_DOUBTS, _GAUGE, "Reasons found so far why the run may not be valid."),
    Metric(FAULTS_INJECTED, _COUNTER, "Steps of faults that the orchestrator carried out: begun or healed."),
    Metric(NODE_UP, _GAUGE, "Whether a node is in the state ok (1), or in any other (0).", _PER_NODE),
    Metric(
        NODE_STATE,
        _GAUGE,
        f"The state of a node; always 1. state: {', '.join(NODE_STATES)}.",
        (NODE, "state"),
    ),
    Metric(
        NODE_AGE,
        _GAUGE,
        "How long before the newest record of the run the newest one of a node was written.",
        _PER_NODE,
        "seconds",
    ),
    Metric(
        CLOCK_OFFSET,
        _GAUGE,
        "How far a node's clock was ahead of the orchestrator's when it was last measured.",
        _PER_NODE,
        "seconds",
    ),
    Metric(CLOCK_UNCERTAINTY, _GAUGE, "How far that may be wrong.", _PER_NODE, "seconds"),
    Metric(
        CLOCK_BOUND,
        _GAUGE,
        "The uncertainty of clocks that the experiment allows (clocks.uncertainty).",
        unit="seconds",
    ),
    Metric(
        RADIO_ATTEMPTED,
        _COUNTER,
        "Frames that the emulated radio took from a node, each receiver in range counted.",
        _PER_NODE,
    ),
    Metric(RADIO_DELIVERED, _COUNTER, "Those of them that it delivered.", _PER_NODE),
    Metric(
        RADIO_LATE, _GAUGE, "Share of the emulated radio's deliveries that were over 1 ms late.", unit="ratio"
    ),
    Metric(
        RADIO_LATENESS,
        _GAUGE,
        "Lateness that 99 % of the emulated radio's deliveries did not exceed.",
        unit="seconds",
    ),
    Metric(
        HOST_DELAY,
        _GAUGE,
        f"How long the run's own processes on {_MACHINE} waited for a processor each time, on average.",
        _PER_MACHINE,
        "seconds",
    ),
    Metric(
        HOST_DELAY_LIMIT,
        _GAUGE,
        "How long they may wait in the experiment (load.delay).",
        unit="seconds",
    ),
    Metric(
        HOST_WAITED,
        _GAUGE,
        f"Share of the time in which processes of {_MACHINE} waited for a processor, where the run's own "
        "are not known apart.",
        _PER_MACHINE,
        "ratio",
    ),
    Metric(
        HOST_LATE,
        _GAUGE,
        f"How late the latest timer of {_MACHINE} fired in the last second.",
        _PER_MACHINE,
        "seconds",
    ),
    Metric(
        HOST_WAITED_LIMIT,
        _GAUGE,
        "The share that the experiment allows for it (load.waited); higher where only the probe's own work "
        "is known to have waited.",
        _PER_MACHINE,
        "ratio",
    ),
    Metric(
        HOST_LATE_LIMIT,
        _GAUGE,
        "How late timers may be in the experiment (load.late).",
        unit="seconds",
    ),
    Metric(
        QUERY_WINDOWS,
        _GAUGE,
        "For how long the operators of a query gather tuples in windows, by its plan, before one is "
        "delivered; a window of a number of tuples counts as 300 s.",
        (APP,),
        "seconds",
    ),
    Metric(RECORDS_READ, _COUNTER, "Believed records of a node that this machine has.", _PER_NODE),
    Metric(BYTES_READ, _COUNTER, "Bytes of these records.", _PER_NODE, "bytes"),
    Metric(BOOT_READ, _GAUGE, "The start of a node's agent that the newest of them is of.", _PER_NODE),
    Metric(
        BOOT_RECORDS_READ,
        _COUNTER,
        "Records since that start of the agent that this machine has, refused ones included.",
        _PER_NODE,
    ),
    Metric(
        RECORDS_REFUSED,
        _COUNTER,
        "Lines of a node's records that cannot be read, or cannot be its own.",
        _PER_NODE,
    ),
    Metric(
        SAMPLES_REFUSED,
        _GAUGE,
        "Samples in a node's last answer that this list does not have, or that are too many.",
    ),
    Metric(RUNS_WATCHED, _GAUGE, "Runs that are going on and are offered by this server."),
)

ONLY_LIVE = frozenset({*(metric.name for metric in READINGS), SAMPLES_REFUSED, RUNS_WATCHED})
"""What is read when somebody asks: no record has it, and so no export."""
_NAME = re.compile(r"rove_[a-z0-9]+(_[a-z0-9]+)*")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")
UNITS = ("seconds", "bytes", "ratio", "metres", "pixels", "volts", "celsius")
_RESERVED_ENDS = ("_total", "_count", "_sum", "_bucket", "_created")
_RESERVED_LABELS = frozenset((*TARGET_LABELS, "job", "instance", "le", "quantile"))


class Declared(NamedTuple):
    """``reporter``: ``agent``, ``run``, or a kind of application. ``labels``: all but those of the target."""

    metric: Metric
    reporter: str

    @property
    def labels(self) -> tuple[str, ...]:
        return self.metric.labels if self.reporter == RUN else (APP, *self.metric.labels)

    @property
    def family(self) -> str:
        """The name without what Prometheus appends for the type."""
        return self.metric.name.removesuffix("_total")

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus stores it."""
        if self.metric.kind is not MetricKind.HISTOGRAM:
            return (self.metric.name,)
        return tuple(f"{self.metric.name}_{end}" for end in ("bucket", "count", "sum"))


def metrics() -> Mapping[str, Declared]:
    """Returns all metrics by name. Raises ExtensionError if an application declares one that is wrong."""
    return _metrics(APPLICATIONS.names())


@cache
def _metrics(kinds: tuple[str, ...]) -> Mapping[str, Declared]:
    declared = [
        *(Declared(metric, RUN) for metric in RUN_METRICS),
        *(Declared(metric, AGENT) for metric in AGENT_METRIC_KINDS.metrics),
    ]
    for kind in kinds:
        reported = APPLICATIONS[kind].metrics
        if reported is not None:
            declared += [Declared(metric, kind) for metric in reported.metrics]
    return collected(declared)


def collected(declared: Iterable[Declared]) -> dict[str, Declared]:
    """Returns the metrics by name. Raises ExtensionError for a wrong one, and for names that clash."""
    found: dict[str, Declared] = {}
    taken: dict[str, str] = {}
    for each in declared:
        if problem := flaw(each):
            raise ExtensionError(f"{each.reporter} reports {each.metric.name!r}: {problem}")
        for name in {each.family, *each.series}:
            if name in taken:
                raise ExtensionError(f"{taken[name]} and {each.reporter} both report {name!r}")
            taken[name] = each.reporter
        found[each.metric.name] = each
    return found


def flaw(declared: Declared) -> str:
    """Returns what is wrong with a declaration by the conventions of Prometheus; empty if nothing is."""
    metric, family = declared.metric, declared.family
    if not _NAME.fullmatch(metric.name):
        return "names begin with rove_ and have small letters, digits and single _"
    if (metric.kind is MetricKind.COUNTER) != (family != metric.name):
        return "counters, and nothing else, end in _total"
    if family.endswith(_RESERVED_ENDS):
        return "the name ends in a word that Prometheus uses itself"
    if metric.unit and (metric.unit not in UNITS or not family.endswith(f"_{metric.unit}")):
        return f"the name ends in its unit, which is one of {', '.join(UNITS)}"
    if not metric.unit and family.endswith(tuple(f"_{unit}" for unit in UNITS)):
        return "the name ends in a unit that is not declared"
    if not metric.help.strip() or "\n" in metric.help:
        return "it needs one line of help"
    if len(set(metric.labels)) != len(metric.labels):
        return "it has a label twice"
    for label in metric.labels:
        is_the_targets = label in _RESERVED_LABELS or (label in (NODE, APP) and declared.reporter != RUN)
        if not _LABEL.fullmatch(label) or is_the_targets:
            return f"the label {label!r} cannot be used"
    edges = metric.buckets
    if (metric.kind is MetricKind.HISTOGRAM) != bool(edges) or list(edges) != sorted(set(edges)):
        return "histograms, and nothing else, have buckets in rising order"
    return ""
