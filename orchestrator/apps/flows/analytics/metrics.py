"""Figures of merit of flows: of each one, and of all together."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results.contribution import (
    Breakdown,
    BreakdownColumn,
    Column,
    Figures,
    Later,
    Metric,
    Rows,
)
from orchestrator.results.spark import Subject, rounded

_FRAMES = "orchestrator.apps.flows.analytics.figure_frames:frames"
_RATIO = (
    "of the packets sent in the measured window, the share that was delivered by the end of the run; those "
    "sent in the last 2 s of the window (in the last quarter of a window shorter than 8 s) are left out, for "
    "they may still be on their way. Of a TCP flow: of the chunks that were to be written"
)
_THROUGHPUT = "payload bits that arrived at the sinks per second of the measured window, in whole seconds"
_DELAY = "time from sending to receiving of the delivered packets that `flow_delivery_ratio` counts"

METRICS = (
    Metric(
        "flow_delivery_ratio",
        _RATIO,
        "",
        "more",
        averaged=True,
        console=Column(1, "delivered %", 100, 1),
        report=Column(1, "delivered\n%", 100, 1),
        of_each_run=True,
        meaning=("delivered", "share of the packets sent in the measured window that arrived"),
    ),
    Metric(
        "flow_delivery_ratio_min",
        "`flow_delivery_ratio` of the flow that has the smallest",
        "",
        "more",
        averaged=True,
        report=Column(2, "worst flow\n%", 100, 1),
        meaning=("worst flow", "the same of the flow that fared worst"),
    ),
    Metric(
        "flow_offered_bps",
        "payload bits that the sources sent per second of the measured window, in whole seconds",
        "bit/s",
        averaged=True,
        console=Column(3, "offered kb/s", 1e-3, 1),
        report=Column(3, "offered\nkb/s", 1e-3, 1),
        meaning=("offered", "what the sources sent, without headers"),
    ),
    Metric(
        "flow_throughput_bps",
        _THROUGHPUT,
        "bit/s",
        "more",
        averaged=True,
        activity=True,
        console=Column(4, "throughput kb/s", 1e-3, 1),
        report=Column(4, "throughput\nkb/s", 1e-3, 1),
        of_each_run=True,
        meaning=("throughput", "what arrived at the sinks, without headers"),
    ),
    Metric("flow_delay_mean_s", f"mean {_DELAY}", "s", "less", averaged=True),
    Metric("flow_delay_p50_s", f"median {_DELAY}", "s", "less", averaged=True),
    Metric(
        "flow_delay_p95_s",
        f"95th percentile of the {_DELAY}, within 2 %",
        "s",
        "less",
        averaged=True,
        console=Column(5, "delay p95 s", digits=3, short="delay p95 ms"),
        report=Column(5, "delay p95\ns", digits=3),
        of_each_run=True,
        meaning=("delay p95", "95 % of the packets that arrived took no longer"),
    ),
    Metric("flow_delay_max_s", f"largest {_DELAY}", "s", "less", averaged=True),
    Metric(
        "flow_jitter_s",
        "interarrival jitter of RFC 3550, the mean over the packets that `flow_delivery_ratio` counts, then "
        "over flows",
        "s",
        "less",
        averaged=True,
        console=Column(6, "jitter s", digits=4, short="jitter ms"),
        report=Column(6, "jitter\ns", digits=4),
        meaning=("jitter", "how much the delay changes from packet to packet (RFC 3550)"),
    ),
    Metric("flow_duplicates", "packets that arrived again, from the start of the run to its end"),
    Metric("flow_reordered", "packets that arrived after one that was sent later, as RFC 4737 counts them"),
    Metric(
        "flows",
        "by flow: the metrics above without `flow_` in front of their names, and `sent_packets`",
        shape=dict[str, dict[str, float | int | None]],
        expect=False,
    ),
)

BY_FLOW = Breakdown(
    "flows",
    "Flows",
    "flow",
    (
        BreakdownColumn("sent_packets", Column(1, "sent\npackets", digits=0), Column(1, "sent", digits=0)),
        BreakdownColumn(
            "delivery_ratio", Column(2, "delivered\n%", 100, 1), Column(2, "delivered %", 100, 1)
        ),
        BreakdownColumn("offered_bps", Column(3, "offered\nkb/s", 1e-3, 1), None),
        BreakdownColumn("throughput_bps", Column(4, "throughput\nkb/s", 1e-3, 1), Column(4, "kb/s", 1e-3, 1)),
        BreakdownColumn("delay_mean_s", Column(5, "delay mean\ns", digits=3), None),
        BreakdownColumn("delay_p95_s", Column(6, "delay p95\ns", digits=3), Column(6, "p95 s", digits=3)),
        BreakdownColumn("jitter_s", Column(7, "jitter\ns", digits=4), None),
    ),
    "Payload without headers. Delivered: of the packets sent in the measured window but for its last 2 s. "
    "Delay: of those that were delivered.",
)

SERIES = {
    "flow_seconds": dict[str, list[list[float]]],
}
"""By flow: seconds since the start of the run, bit/s sent, bit/s arrived. ``""``: all flows together."""


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    by_flow = {row["flow"]: _figures(row) for row in sorted(rows["flows"], key=lambda row: str(row["flow"]))}
    in_all = by_flow.pop("", None) or _figures({})
    jitters = [each["jitter_s"] for each in by_flow.values() if each["jitter_s"] is not None]
    ratios = [each["delivery_ratio"] for each in by_flow.values() if each["delivery_ratio"] is not None]
    in_all["jitter_s"] = rounded(sum(jitters) / len(jitters)) if jitters else None
    in_all["delivery_ratio_min"] = min(ratios, default=None)
    del in_all["sent_packets"]
    return {
        **{f"flow_{name}": value for name, value in in_all.items()},
        "flows": by_flow,
        "flow_seconds": _series(subject, rows["seconds"]),
    }


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    sent, delivered, seconds = row.get("sent") or 0, row.get("delivered") or 0, row.get("seconds")
    p50, p95 = row.get("quantiles") or (None, None)
    return {
        "sent_packets": sent,
        "delivery_ratio": rounded(min(delivered / sent, 1.0)) if sent else None,
        "offered_bps": rounded(8 * (row["offered_bytes"] or 0) / seconds) if seconds else None,
        "throughput_bps": rounded(8 * (row["arrived_bytes"] or 0) / seconds) if seconds else None,
        "delay_mean_s": _seconds(row.get("delay_mean_s")),
        "delay_p50_s": _seconds(p50, 1e9),
        "delay_p95_s": _seconds(p95, 1e9),
        "delay_max_s": _seconds(row.get("delay_max_s")),
        "jitter_s": _seconds(row.get("jitter_s")),
        "duplicates": row.get("duplicates") or 0,
        "reordered": row.get("reordered") or 0,
    }


def _seconds(value: float | None, of: float = 1.0) -> float | None:
    return None if value is None else rounded(value / of)


def _series(subject: Subject, rows: Rows) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for row in sorted(rows, key=lambda row: (str(row["flow"]), row["t_ns"])):
        at_s = (row["t_ns"] - subject.zero_ns) / 1e9
        found.setdefault(row["flow"], []).append([at_s, 8.0 * row["sent_bytes"], 8.0 * row["arrived_bytes"]])
    return found


FIGURES = Figures(Later(_FRAMES), values, METRICS, SERIES)


def notes(entry: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which flows got nothing through, of a single run."""
    figures = metrics[0]["flows"] if len(metrics) == 1 else {}
    lost = [name for name, found in figures.items() if found["sent_packets"] and not found["throughput_bps"]]
    return [f"Nothing arrived of {', '.join(lost)}."] if lost else []
