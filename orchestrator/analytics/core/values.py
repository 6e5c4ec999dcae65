"""Metrics and series of a run that concern no single application, and those about the paths that an
application needs.

Times are in seconds since the first record of the run. ``value_frames`` chooses what they are computed from.
"""

from collections.abc import Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Any

from orchestrator.analytics.core.connectivity import changes_in
from orchestrator.analytics.core.neighbourhood import hops, moments
from orchestrator.results.contribution import Column, Figures, Later, Metric, Rows
from orchestrator.results.spark import Subject, half_up, rounded
from orchestrator.results.truth import LINKS
from orchestrator.runs.outages import read_outages

_FRAMES = "orchestrator.analytics.core.value_frames"

MOST_MOMENTS = 200
"""Limit of the times at which neighbours are counted."""

LOG_FIGURES = ("boots", "incomplete_boots", "records", "missing", "duplicates", "corrupt_lines", "refused")
MOST_LINKS = 300
"""Limit of links; those with most traffic are kept."""

TENTH, SHARE = Decimal("0.1"), Decimal("0.0001")

READ_FIGURES = ("records", "corrupt_lines", "refused")


def _times(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    manifest = subject.run.manifest
    window = [subject.seconds(manifest.get(name)) for name in ("measure_from_ns", "measure_until_ns")]
    faults = [
        [what, node, subject.seconds(from_ns), subject.seconds(until_ns), note]
        for what, node, from_ns, until_ns, note in read_outages(subject.run.directory.events)
    ]
    return {"window_s": window, "ended_s": subject.seconds(subject.ended_ns), "faults": faults}


TIMES = Figures(
    lambda reading: {},
    _times,
    series={
        "window_s": tuple[float | None, float | None],
        "ended_s": float | None,
        "faults": list[tuple[str, str, float, float | None, str]],
    },
)


def _logs(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    """Returns ``telemetry``: how complete it is; ``nodes``: what was read from each; ``boots``: when agents
    ran.
    """
    whole = {
        "boots": len(rows["boots"]),
        "incomplete_boots": sum(not row["complete"] for row in rows["boots"]),
        **{name: sum(row[name] for row in rows["boots"]) for name in LOG_FIGURES[2:]},
    }
    read: dict[str, dict[str, int]] = {}
    boots: dict[str, list[list[float]]] = {}
    for row in sorted(rows["boots"], key=itemgetter("node", "boot")):
        sums = read.setdefault(row["node"], dict.fromkeys(READ_FIGURES, 0))
        for name in READ_FIGURES:
            sums[name] += row[name]
        first, last = subject.seconds(row["first_ns"]), subject.seconds(row["last_ns"])
        if first is not None and last is not None:
            boots.setdefault(row["node"], []).append([first, last])
    return {
        "telemetry": whole,
        "nodes": read,
        "boots": boots,
    }


LOGS = Figures(
    Later(f"{_FRAMES}:logs"),
    _logs,
    series={
        "telemetry": dict[str, int],
        "nodes": dict[str, dict[str, int]],
        "boots": dict[str, list[tuple[float, float]]],
    },
)


def _network(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    """Returns, as ``neighbours``, the time and the mean, least and most neighbours of a node; empty without
    any link.
    """
    positions: dict[str, list[list[float]]] = {}
    for row in sorted(rows["positions"], key=itemgetter("node", "t_ns")):
        positions.setdefault(row["node"], []).append([half_up(row[name], TENTH) for name in ("x", "y")])
    links = sorted(rows["links"], key=lambda row: (-row["attempted"], row["src"], row["dst"]))[:MOST_LINKS]
    changes = changes_in(subject.run.directory.radio / LINKS)
    found = moments(changes, positions, _moments(subject)) if changes else []
    return {
        "positions": positions,
        "links": [[int(row["attempted"]), int(row["delivered"]), _expected(row)] for row in links],
        "neighbours": [[subject.seconds(m.t_ns), round(m.mean, 3), m.least, m.most] for m in found],
    }


def _expected(link: Mapping[str, Any]) -> float | None:
    """Returns the share that should arrive, the mean over what was sent; None if it is not known."""
    weighed, attempted = link["weighed"], int(link["attempted"])
    return half_up(weighed / attempted, SHARE) if attempted and weighed is not None else None


def _moments(subject: Subject) -> range:
    """Returns the times at which the network is examined, from the beginning of the run to its end."""
    begin, end = subject.zero_ns, subject.ended_ns
    if end is None:
        return range(0)
    return range(begin, end, 10**9 * max(1, -(-(end - begin) // (MOST_MOMENTS * 10**9))))


NETWORK = Figures(
    Later(f"{_FRAMES}:network"),
    _network,
    series={
        "positions": dict[str, list[tuple[float, float]]],
        "links": list[tuple[int, int, float | None]],
        "neighbours": list[tuple[float, float, int, int]],
    },
)

CONNECTED = Metric(
    "source_sink_connected_ratio",
    "share of the window in which ground truth had a path from every source to a sink; none where the true "
    "links are unknown (`ssh`, `core`)",
    better="more",
    averaged=True,
    report=Column(800, "connected\n%", 100, 1),
    meaning=(
        "connected",
        "share of time in which a path between source and sink existed at all (ground truth)",
    ),
)


def _ways(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    """Returns, as ``hops``, the hops over time of the source that is farthest from its nearest sink; null
    without a path.
    """
    assert subject.app is not None
    intervals = sorted(rows["intervals"], key=itemgetter("from_ns"))
    changes = changes_in(subject.run.directory.radio / LINKS)
    counted = hops(changes, *subject.app.ends, _moments(subject)) if changes else []
    return {
        CONNECTED.name: _connected_ratio(subject, intervals),
        "connectivity": [
            [subject.seconds(row["from_ns"]), subject.seconds(row["until_ns"]), row["connected"]]
            for row in intervals
        ],
        "hops": [[subject.seconds(t_ns), count] for t_ns, count in counted],
    }


def _connected_ratio(subject: Subject, intervals: Rows) -> float | None:
    begin, end = (subject.run.manifest.get(name) for name in ("measure_from_ns", "measure_until_ns"))
    if not intervals or not subject.window_ns:
        return None
    inside = (min(row["until_ns"], end) - max(row["from_ns"], begin) for row in intervals if row["connected"])
    return rounded(sum(max(each, 0) for each in inside) / subject.window_ns)


WAYS = Figures(
    Later(f"{_FRAMES}:ways"),
    _ways,
    (CONNECTED,),
    series={
        "connectivity": list[tuple[float, float, bool]],
        "hops": list[tuple[float, int | None]],
    },
)
