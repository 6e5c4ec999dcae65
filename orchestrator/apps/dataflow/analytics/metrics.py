"""Declares the metrics of a dataflow. ``tuple_figures`` and ``route_figures`` compute them."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results.contribution import Breakdown, BreakdownColumn, Column, Figures, Later, Metric

_HERE = "orchestrator.apps.dataflow.analytics"
_MUCH_LOSS = 0.2
"""A higher share of lost tuples is shown in bold."""

_THROUGHPUT = (
    "tuples and payload (10³ bit) per second at the sink, from the first to the last arrival in the window "
    "(the paper's definition); 0 with fewer than two arrivals"
)
_GOODPUT = "tuples and payload (10³ bit) that arrived in the window, per second of its whole length"
_OFFERED = (
    "tuples that sources made in the window, per second of it, those that they shed included; a source that "
    "saturates, or waits for room, offers what it was let make"
)
_SHED = (
    "dropped by their source because its buffer was full (`source_buffer_full`); shed / (owed − filtered or "
    "absorbed − in flight)"
)
_NETWORK_LOSS = "of the tuples that left their source, those that were lost: (lost − shed) / (… − shed)"
_LATENCY = "arrival minus capture at the source; exact percentiles, interpolated between values"
_LOST = (
    "neither delivered, filtered or absorbed, nor still in flight at the end; lost / (owed − filtered or "
    "absorbed − in flight)"
)
_EMITTED = (
    "tuples born in the window; those of them that reached the sink, each counted once (at each sink), "
    "whenever they arrived"
)


def _latency(
    name: str, console: Column | None = None, report: Column | None = None, **options: Any
) -> Metric:
    return Metric(
        f"latency_{name}_s", _LATENCY, "s", "less", averaged=True, console=console, report=report, **options
    )


_FLOW = (
    Metric(
        "goodput_fps",
        _GOODPUT,
        "tuples/s",
        "more",
        averaged=True,
        compared=True,
        console=Column(100, "goodput\n/s"),
        report=Column(100, "goodput\ntuples/s", digits=2),
        of_each_run=True,
        activity=True,
        gain="goodput",
        headline=True,
        in_words="carries {times} the tuples of",
        meaning=(
            "goodput",
            "arrivals at the sink per second over the whole measured window, outages included",
        ),
    ),
    Metric("goodput_kbps", _GOODPUT, "kbit/s", "more", averaged=True, compared=True),
    Metric(
        "offered_fps",
        _OFFERED,
        "tuples/s",
        averaged=True,
        console=Column(200, "offered\n/s"),
        report=Column(110, "offered\ntuples/s", digits=2),
        of_each_run=True,
        meaning=(
            "offered",
            "tuples that sources made per second of the measured window, those that they shed included; one "
            "that saturates makes only what there is room for",
        ),
    ),
    Metric("shed", _SHED, "tuples", "less", shape=int),
    Metric(
        "shed_ratio",
        _SHED,
        "",
        "less",
        averaged=True,
        console=Column(210, "shed\n%", 100, 1),
        report=Column(120, "shed\n%", 100, 1),
        meaning=("shed", "share of tuples that their source dropped itself, because its buffer was full"),
    ),
    Metric(
        "network_loss_ratio",
        _NETWORK_LOSS,
        "",
        "less",
        averaged=True,
        console=Column(220, "lost\n%", 100, 1),
        report=Column(130, "lost\n%", 100, 1, bad_above=_MUCH_LOSS),
        of_each_run=True,
        meaning=(
            "lost",
            "share of what left the sources that never arrived; what was still under way at the end does not "
            "count",
        ),
    ),
    _latency("mean"),
    _latency(
        "p50",
        Column(300, "latency\np50 s", short="latency\np50 ms"),
        Column(500, "latency p50\ns", digits=3),
        compared=True,
        meaning=("latency", "arrival at the sink minus capture at the source"),
    ),
    _latency(
        "p95",
        Column(400, "latency\np95 s", short="latency\np95 ms"),
        Column(600, "latency p95\ns", digits=3),
        compared=True,
        of_each_run=True,
        gain="p95",
    ),
    _latency("p99"),
    _latency("max"),
    Metric(
        "throughput_fps",
        _THROUGHPUT,
        "tuples/s",
        "more",
        averaged=True,
        compared=True,
        console=Column(500, "through-\nput /s"),
        report=Column(650, "throughput\ntuples/s", digits=2),
        meaning=(
            "throughput",
            "the paper's: arrivals per second between the first and the last one after warm-up; outages "
            "before and after them do not lower it",
        ),
    ),
    Metric(
        "throughput_kbps",
        _THROUGHPUT,
        "kbit/s",
        "more",
        averaged=True,
        compared=True,
        report=Column(660, "throughput\nkbit/s", digits=0),
    ),
    Metric("lost", _LOST, "tuples", "less", shape=int),
    Metric("loss_ratio", _LOST, "", "less", averaged=True),
    Metric("emitted", _EMITTED, "tuples", shape=int, averaged=True),
    Metric("delivered", _EMITTED, "tuples", "more", shape=int, averaged=True, activity=True),
    Metric("duplicates", "further arrivals of the same tuple", "tuples", "less", shape=int),
    Metric(
        "in_flight_at_end", "tuples that were still under way at the end", "tuples", shape=int, expect=False
    ),
    Metric(
        "fates", "how many tuples had which fate: see `tuples`", "tuples", shape=dict[str, int], expect=False
    ),
    Metric(
        "sinks",
        "only of queries with several sinks: `owed` and the figures above for each of them",
        shape=dict[str, dict[str, Any]],
        optional=True,
        expect=False,
    ),
)

TUPLES = Figures(
    Later(f"{_HERE}.tuple_figures:frames"),
    Later(f"{_HERE}.tuple_figures:values"),
    _FLOW,
    series={
        "latency_quantiles_s": list[float],
        "deliveries": list[tuple[float, float, float]],
        "never_emitted": int,
    },
    flaws=("never_emitted",),
)

ROUTES = Figures(
    Later(f"{_HERE}.route_figures:frames"),
    Later(f"{_HERE}.route_figures:values"),
    (
        Metric(
            "switches",
            "how often in the window a replica switched to another downstream replica; counts only "
            "replicas that emitted or received a tuple in the window (the table `switches` has the "
            "decisions of all)",
            shape=int,
            averaged=True,
            report=Column(700, "switches", digits=0),
            meaning=(
                "switches",
                "how often a replica that carried tuples switched to another downstream replica",
            ),
        ),
        Metric(
            "switches_per_min",
            "`switches` per minute of the window",
            "1/min",
            averaged=True,
        ),
        Metric(
            "no_route_s",
            "how long sources had no route in the window, summed over sources and their outputs",
            "s",
            "less",
            shape=float,
            averaged=True,
        ),
    ),
    series={
        "routes": list[tuple[float, str, str, str | None]],
        "operator_faults": dict[str, int],
    },
    summary=("operator_faults",),
)

SINKS = Breakdown(
    "sinks",
    "Sinks",
    "sink",
    (
        BreakdownColumn("owed", Column(1, "owed\ntuples", digits=0), Column(1, "owed", digits=0)),
        BreakdownColumn(
            "delivered", Column(2, "delivered\ntuples", digits=0), Column(2, "delivered", digits=0)
        ),
        BreakdownColumn(
            "loss_ratio", Column(3, "shed or\nlost %", 100, 1), Column(3, "shed, lost %", 100, 1)
        ),
        BreakdownColumn(
            "goodput_fps", Column(4, "goodput\ntuples/s", digits=2), Column(4, "goodput /s", digits=2)
        ),
        BreakdownColumn("latency_p50_s", Column(5, "latency p50\ns", digits=3), None),
        BreakdownColumn("latency_p95_s", Column(6, "latency p95\ns", digits=3), Column(6, "p95 s", digits=3)),
    ),
    "Each tuple should reach every sink that its stream leads to; the loss above covers all of them.",
)


def arrived_share(metrics: Mapping[str, Any]) -> float | None:
    """Returns the share of the owed deliveries that were made; what windows and filters took is not owed."""
    loss: float | None = metrics.get("loss_ratio")
    return None if loss is None else 1 - loss


def notes(entry: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns notes for the reader: that nothing arrived, and which tuples operators skipped."""
    notes = []
    if metrics and not any(each["delivered"] for each in metrics):
        notes.append("Nothing was delivered in the measured window, so there is no latency to show.")
    faults = (entry.get("operator_faults") or {}).items()
    if counts := ", ".join(f"{kind.replace('_', ' ')} {times:,} ×" for kind, times in faults):
        notes.append(f"Operators passed over what they could not use: {counts}.")
    return notes
