"""Figures of queries that share selections: what was processed, for whom, how similar, how long it waited."""

from collections.abc import Mapping
from typing import Any

from orchestrator.results.contribution import Breakdown, BreakdownColumn, Column, Metric, Rows
from orchestrator.results.spark import rounded

S = 1e9
MOST_PAIRS = 40
"""Of queries in a table."""
_Parts = dict[str, dict[str, float | int | None]]

METRICS = (
    Metric(
        "interest_decided",
        "selections that selection managers decided about; without reuse each of them would be processed",
        "",
        "",
        averaged=True,
        of_each_run=True,
    ),
    Metric(
        "interest_shared",
        "of these, those that were not processed and got results of others",
        "",
        "more",
        averaged=True,
        optional=True,
        report=Column(7, "shared", digits=0),
        meaning=("shared", "selections that were not processed and got results of others"),
    ),
    Metric(
        "interest_saved",
        "the share of decided selections that were not processed",
        "",
        "more",
        averaged=True,
        optional=True,
        console=Column(8, "saved %", 100, 0),
        report=Column(8, "saved %", 100, 0),
        meaning=("saved", "the share of decided selections that were not processed"),
    ),
    Metric(
        "interest_precision",
        "mean precision of results of queries that share, by the atomic events they were made of, against "
        "those that they would have been made of alone",
        "",
        "more",
        averaged=True,
        optional=True,
        report=Column(9, "precision", digits=2),
        meaning=("precision, recall", "of results, against those without reuse, by atomic events"),
    ),
    Metric(
        "interest_recall",
        "their mean recall",
        "",
        "more",
        averaged=True,
        optional=True,
        report=Column(10, "recall", digits=2),
    ),
    Metric(
        "interest_comparisons",
        "comparisons of selections, for each selection that got results of another",
        "",
        "less",
        averaged=True,
    ),
    Metric(
        "interest_disparity",
        "how badly the input of processed selections fits together that is made of results for different "
        "places: 0 if it fits; null if no selections are made of results",
        "",
        "less",
        averaged=True,
    ),
    Metric(
        "interest_wait_mean_s",
        "mean time from when a selection could be known to the end of its period",
        "s",
        "less",
        averaged=True,
    ),
    Metric(
        "managers",
        "by selection manager: `broker`, `selections`, `processed`, `saved`, `comparisons`, `wait_mean_s`",
        shape=dict[str, dict[str, float | int | str | None]],
        expect=False,
    ),
    Metric(
        "shared_selections",
        "by two queries, such as `a → b`: selections of b that got results of a, their mean `precision` and "
        "`recall`",
        shape=_Parts,
        expect=False,
    ),
)
BY_MANAGER = Breakdown(
    "managers",
    "Selection managers",
    "manager",
    (
        BreakdownColumn("selections", Column(1, "selections", digits=0), Column(1, "selections", digits=0)),
        BreakdownColumn("processed", Column(2, "processed", digits=0), Column(2, "processed", digits=0)),
        BreakdownColumn("saved", Column(3, "saved %", 100, 0), Column(3, "saved %", 100, 0)),
        BreakdownColumn("comparisons", Column(4, "comparisons", digits=0), None),
        BreakdownColumn("wait_mean_s", Column(5, "wait mean\ns", digits=2), None),
    ),
    "Saved: the share of selections that got results of others and were not processed.",
)
BY_PAIR = Breakdown(
    "shared_selections",
    "Who got results of whom",
    "from → to",
    (
        BreakdownColumn("selections", Column(1, "selections", digits=0), None),
        BreakdownColumn("precision", Column(2, "precision", digits=2), None),
        BreakdownColumn("recall", Column(3, "recall", digits=2), None),
    ),
    f"The {MOST_PAIRS} pairs of queries that shared most. Precision and recall by atomic events.",
)
SERIES = {"sharing": dict[str, dict[str, int]]}
"""By query, the queries that got results of it, and of how many selections."""


def sharing(rows: Mapping[str, Rows]) -> dict[str, Any]:
    managers: dict[tuple[str, str], Any] = {}
    for row in sorted(rows["selection_managers"], key=lambda row: row["t_ns"]):
        managers[row["node"], row["manager"]] = row
    decided = sum(row["selections"] for row in managers.values())
    processed = sum(row["processed"] for row in managers.values())
    comparisons = sum(row["comparisons"] for row in managers.values())
    waited = sum(row["waited_ns"] for row in managers.values()) / S
    unfit = [row["disparity"] for row in managers.values() if row["disparity"] is not None]
    pairs = _pairs(rows["shared_selections"])
    graph: dict[str, dict[str, int]] = {}
    for (by, query), found in pairs.items():
        graph.setdefault(by, {})[query] = found[0]
    most = sorted(pairs.items(), key=lambda each: (-each[1][0], each[0]))[:MOST_PAIRS]
    return {
        "interest_decided": decided,
        "interest_shared": decided - processed if managers else None,
        "interest_saved": _share(decided - processed, decided),
        "interest_precision": _mean(rows["situations"], "precision"),
        "interest_recall": _mean(rows["situations"], "recall"),
        "interest_comparisons": _share(comparisons, decided - processed),
        "interest_disparity": rounded(sum(unfit) / len(unfit)) if unfit else None,
        "interest_wait_mean_s": _share(waited, decided),
        "managers": {row["manager"]: _manager(row) for _, row in sorted(managers.items())},
        "shared_selections": {
            f"{by} → {query}": {
                "selections": count,
                "precision": rounded(precision / count),
                "recall": rounded(recall / count),
            }
            for (by, query), (count, precision, recall) in most
        },
        "sharing": graph,
    }


def _manager(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "broker": row["node"],
        "selections": row["selections"],
        "processed": row["processed"],
        "saved": _share(row["selections"] - row["processed"], row["selections"]),
        "comparisons": row["comparisons"],
        "wait_mean_s": _share(row["waited_ns"] / S, row["selections"]),
    }


def _pairs(rows: Rows) -> dict[tuple[str, str], tuple[int, float, float]]:
    """By two queries: selections, and sums of precision and recall, of all managers."""
    newest: dict[tuple[str, str, str, str], Any] = {}
    for row in sorted(rows, key=lambda row: row["t_ns"]):
        newest[row["node"], row["manager"], row["by"], row["query"]] = row
    found: dict[tuple[str, str], tuple[int, float, float]] = {}
    for (_, _, by, query), row in newest.items():
        count, precision, recall = found.get((by, query), (0, 0.0, 0.0))
        more = row["selections"]
        found[by, query] = (
            count + more,
            precision + more * row["precision"],
            recall + more * row["recall"],
        )
    return {pair: each for pair, each in found.items() if each[0]}


def _mean(rows: Rows, field: str) -> float | None:
    known = [row[field] for row in rows if row.get(field) is not None]
    return rounded(sum(known) / len(known)) if known else None


def _share(part: float, whole: float) -> float | None:
    return rounded(part / whole) if whole else None
