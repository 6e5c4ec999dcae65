"""Declares the paths of tuples: through which replicas each went, where its time was spent, how many paths
were used. ``path_table`` makes the table, ``path_frames`` the frames.
"""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

from node_agent.apps.dataflow.model.plan import operator_of
from orchestrator.results.columns import COUNT, COUNTS, FLAG, TEXT, TEXTS
from orchestrator.results.contribution import (
    Breakdown,
    BreakdownColumn,
    Column,
    Figures,
    Later,
    Metric,
    Rows,
    Table,
)
from orchestrator.results.spark import Subject, over_window, rounded

_HERE = "orchestrator.apps.dataflow.analytics"

PATHS = Table(
    "paths",
    "a delivered tuple's path to a `sink`: its replicas, and for each of them the nanoseconds on the way to "
    "it (`network_ns`), waiting there (`queue_ns`) and in its operator (`compute_ns`), which add up to "
    "`latency_ns`; not `complete`: a part of it was not recorded",
    {
        "run": TEXT,
        "app": TEXT,
        "origin": TEXT,
        "tau": COUNT,
        "sink": TEXT,
        "path": TEXTS,
        "network_ns": COUNTS,
        "queue_ns": COUNTS,
        "compute_ns": COUNTS,
        "latency_ns": COUNT,
        "complete": FLAG,
        "in_window": FLAG,
    },
    ("app", "origin", "tau", "sink"),
    Later(f"{_HERE}.path_table:paths"),
)

PARTS = ("network", "queue", "compute")
_PARTS = (
    "mean time that a tuple born in the window spent between replicas (from when the sender's connection "
    "took it until the receiver accepted it), waiting in replicas, and in operators; they add up to the mean "
    "latency of the tuples whose path is known completely. A tuple that a window or join made begins there: "
    "the time since the birth of its last input counts as waiting"
)
_PATHS = (
    "paths that tuples born in the window took, each path a list of replicas: how many, and the effective "
    "number, e to the entropy of their shares (1: all took one path; n: n paths were used equally). Streams "
    "and sinks are counted apart; the effective number is that of their mean entropy, by tuples"
)
OPERATORS_TEXT = (
    "by operator, in the window: `arrived_fps` and `arrived_kbps`, the tuples and payload (10³ bit) that "
    "reached a replica of it for the first time (of a source: that it made) per second; `replicas` that got "
    "some first; and its parts of `latency_network_s` (`network_s`, on the way to it), `latency_queue_s` "
    "(`queue_s`) and `latency_compute_s` (`compute_s`): those of all operators add up to the whole, because "
    "a tuple that took another way counts with 0"
)

METRICS = (
    *(Metric(f"latency_{part}_s", _PARTS, "s", "less", averaged=True) for part in PARTS),
    Metric(
        "paths_known_ratio",
        "share of the delivered tuples born in the window whose path is known completely",
        better="more",
        averaged=True,
    ),
    Metric("paths_used", _PATHS, "paths", shape=int, averaged=True),
    Metric("paths_effective", _PATHS, "paths", averaged=True),
    Metric("operators", OPERATORS_TEXT, shape=dict[str, dict[str, Any]], expect=False),
)

OPERATORS = Breakdown(
    "operators",
    "Operators",
    "operator",
    (
        BreakdownColumn("arrived_fps", Column(1, "arrived\ntuples/s", digits=2), None),
        BreakdownColumn("arrived_kbps", Column(2, "arrived\nkbit/s", digits=0), None),
        BreakdownColumn("replicas", Column(3, "replicas\nused", digits=1), None),
        BreakdownColumn("network_s", Column(4, "on the way\nto it, s", digits=4), None),
        BreakdownColumn("queue_s", Column(5, "waiting\ns", digits=4), None),
        BreakdownColumn("compute_s", Column(6, "computing\ns", digits=4), None),
    ),
    "A source's tuples are those that it made. The times are means over the tuples whose path is known "
    "completely; all of them together are these tuples' mean latency.",
)


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    assert subject.app is not None
    # At the first place of each path stand all tuples that took it.
    begins = [row for row in rows["stages"] if not row["place"]]
    delivered = sum(row["tuples"] for row in begins)
    count = sum(row["tuples"] for row in begins if row["path"] is not None)
    spent = _spent(rows["stages"])
    arrived = {row["operator"]: row for row in rows["arrived"]}
    means = {
        part: rounded(sum(row[part] for row in spent.values()) / count / 1e9) if count else None
        for part in PARTS
    }
    shares: dict[tuple[str, str], list[int]] = {}
    for row in begins:
        if row["path"] is not None:
            shares.setdefault((row["origin"], row["sink"]), []).append(row["tuples"])
    return {
        **{f"latency_{part}_s": mean for part, mean in means.items()},
        "paths_known_ratio": rounded(count / delivered) if delivered else None,
        "paths_used": sum(map(len, shares.values())),
        "paths_effective": effective_number(list(shares.values())),
        "operators": {
            operator: _of_operator(arrived.get(operator), spent.get(operator), count, subject.window_ns)
            for operator in subject.app.plan.query.names()
        },
    }


def _spent(stages: Rows) -> dict[str, dict[str, int]]:
    """Returns by operator the nanoseconds of all tuples together, by part."""
    found: dict[str, dict[str, int]] = {}
    for row in stages:
        if row["path"] is not None:
            spent = found.setdefault(operator_of(row["path"][row["place"]]), dict.fromkeys(PARTS, 0))
            for part in PARTS:
                spent[part] += row[f"{part}_ns"]
    return found


def _of_operator(
    arrived: Mapping[str, Any] | None, spent: Mapping[str, int] | None, count: int, window_ns: int
) -> dict[str, Any]:
    return {
        "arrived_fps": over_window(arrived["tuples"] if arrived else 0, window_ns),
        "arrived_kbps": over_window(arrived["bytes"] * 8 / 1e3 if arrived else 0, window_ns),
        "replicas": arrived["replicas"] if arrived else 0,
        **{
            f"{part}_s": rounded((spent[part] if spent else 0) / count / 1e9) if count else None
            for part in PARTS
        },
    }


def effective_number(groups: Sequence[Sequence[int]]) -> float | None:
    """Returns e to the mean entropy of the groups' shares, weighted by their sizes; None without any."""
    whole = sum(map(sum, groups))
    if not whole:
        return None
    # Sorted, because sums of fractions depend on their order.
    parts = sorted(-count * log(count / sum(group)) for group in groups for count in group)
    return rounded(exp(sum(parts) / whole))


FIGURES = Figures(Later(f"{_HERE}.path_frames:frames"), values, METRICS)
