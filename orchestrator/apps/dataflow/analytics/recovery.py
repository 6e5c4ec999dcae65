"""Declares how long an application takes to recover from a fault."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results.contribution import Figures, Later, Metric, Rows
from orchestrator.results.inputs import RunInput
from orchestrator.results.spark import Subject, rounded
from orchestrator.runs.outages import Outage, read_outages

_HERE = "orchestrator.apps.dataflow.analytics"

BEGAN, ENDED = "began", "ended"
MOST_FAULTS = 200
"""Of more, the first are looked at."""

_RECOVERY = (
    "time from the beginning of a fault until a tuple that was born after it reached its sink (the slowest "
    "sink, if there are several): the mean and the largest over the faults that began in the window. A fault "
    "that hurts nothing has about one latency. None without faults, or if the application recovered from none"
)
_RESUMED = (
    "time from the end of a fault until a tuple that was born after that end reached its sink (the slowest "
    "sink), the mean over the faults that began and ended in the window"
)

METRICS = (
    Metric("recovery_mean_s", _RECOVERY, "s", "less", averaged=True),
    Metric("recovery_max_s", _RECOVERY, "s", "less", averaged=True),
    Metric("resumed_mean_s", _RESUMED, "s", "less", averaged=True),
    Metric(
        "faults_unrecovered",
        "faults that began in the window and after which some sink got no tuple that was born later, up to "
        "the end of the run; they are not in `recovery_mean_s`",
        "faults",
        "less",
        shape=int,
        averaged=True,
    ),
)

RECOVERIES = list[tuple[str, str, float, float | None, float | None]]
"""What, whom, seconds since the start of the run, seconds until recovery, seconds from its end to the next
delivery.
"""


def faults_in_window(run: RunInput) -> list[Outage]:
    """Returns the faults that began in the measured window, in the order of time."""
    begin, end = (run.manifest.get(name) for name in ("measure_from_ns", "measure_until_ns"))
    if begin is None or end is None:
        return []
    found = [each for each in read_outages(run.directory.events) if begin <= each.from_ns < end]
    return found[:MOST_FAULTS]


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    assert subject.app is not None
    sinks = len(subject.app.plan.query.sinks())
    window_end = subject.run.manifest.get("measure_until_ns") or 0
    faults = faults_in_window(subject.run)
    first: dict[tuple[int, str], list[int]] = {}
    for row in rows["first"]:
        first.setdefault((row["fault"], row["after"]), []).append(row["first_ns"])
    recovered = [
        _seconds(fault.from_ns, first.get((number, BEGAN), ()), sinks) for number, fault in enumerate(faults)
    ]
    resumed = [
        _seconds(fault.until_ns, first.get((number, ENDED), ()), sinks)
        if fault.until_ns is not None and fault.until_ns < window_end
        else None
        for number, fault in enumerate(faults)
    ]
    known, since = ([each for each in found if each is not None] for found in (recovered, resumed))
    return {
        "recovery_mean_s": rounded(sum(known) / len(known)) if known else None,
        "recovery_max_s": max(known, default=None),
        "resumed_mean_s": rounded(sum(since) / len(since)) if since else None,
        "faults_unrecovered": len(recovered) - len(known),
        "recoveries": [
            [fault.what, fault.node, subject.seconds(fault.from_ns), back, again]
            for fault, back, again in zip(faults, recovered, resumed, strict=True)
        ],
    }


def _seconds(since_ns: int, first: Sequence[int], sinks: int) -> float | None:
    """Returns how long it took until every sink had got something; None if one never did."""
    return rounded((max(first) - since_ns) / 1e9) if len(first) == sinks else None


FIGURES = Figures(
    Later(f"{_HERE}.recovery_frames:frames"), values, METRICS, series={"recoveries": RECOVERIES}
)
