"""Figures of merit of operators that move: how often, what was copied, how long they stood still, and what
streams and copies cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.apps.mcep.plan import Recorded
from orchestrator.results.contribution import Column, Figures, Metric, Rows
from orchestrator.results.spark import Reading, Subject, rounded

if TYPE_CHECKING:
    import pyarrow as pa

S = 1e9
METRICS = (
    Metric(
        "migrations",
        "operators of queries that went to another broker",
        "",
        "",
        averaged=True,
        optional=True,
        console=Column(20, "moved", digits=0),
        report=Column(20, "moved", digits=0),
        of_each_run=True,
        meaning=("moved", "how often an operator went to another broker"),
    ),
    Metric("migrations_failed", "migrations that ended where they began", "", "less", averaged=True),
    Metric(
        "migration_stopped_mean_s",
        "mean time that an operator stood still while it moved: live from the hand-over to when the new "
        "broker took over, with stop_and_copy from when it was stopped",
        "s",
        "less",
        averaged=True,
        optional=True,
        console=Column(21, "stopped s", short="stopped ms"),
        report=Column(21, "stopped mean\ns", short="stopped mean\nms"),
        meaning=("stopped", "how long an operator stood still while it moved"),
    ),
    Metric("migration_stopped_max_s", "the longest such time", "s", "less", averaged=True),
    Metric("migration_state_bytes", "bytes of immutable state that were copied", "B", "less", averaged=True),
    Metric("migration_input_bytes", "bytes of buffered input that were copied", "B", "less", averaged=True),
    Metric(
        "planning_messages",
        "messages by which operators and brokers agreed on plans",
        "",
        "less",
        averaged=True,
    ),
    Metric("plans_followed", "plans of operators that their neighbours agreed to", "", "", averaged=True),
    Metric(
        "stream_bdp",
        "bytes of streams between brokers, heartbeats among them, times the latency between them, of queries "
        "with `migrate`",
        "B·s",
        "less",
        averaged=True,
        optional=True,
        console=Column(22, "stream bdp"),
        report=Column(22, "stream bdp\nB·s"),
        meaning=("stream bdp", "bytes of streams between brokers times their latency"),
    ),
    Metric(
        "migration_bdp",
        "the same of what was copied to new brokers",
        "B·s",
        "less",
        averaged=True,
        optional=True,
        console=Column(23, "copy bdp"),
        report=Column(23, "copy bdp\nB·s"),
    ),
)
SERIES = {"operator_places": dict[str, list[list[float]]], "operator_brokers": list[str]}
"""By query and operator: seconds since the start, and the number of the broker from then on."""


def frames(reading: Reading) -> Mapping[str, "pa.Table"]:
    names = ("operator_places", "operator_steps", "operator_traffic")
    return {name: reading.columns(name) for name in names}


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    recorded = subject.app.plan if subject.app is not None else None
    assert isinstance(recorded, Recorded)
    if recorded.settings.between is None:
        return {metric.name: None for metric in METRICS} | {"operator_places": {}, "operator_brokers": []}
    ended = [row for row in rows["operator_places"] if row["migration"]]
    moved = [row for row in ended if row["outcome"] == "moved"]
    stopped = _stopped(recorded, rows["operator_steps"])

    def last(field: str) -> int:
        newest: dict[tuple[Any, ...], int] = {}
        for row in rows["operator_traffic"]:
            place = row["node"], row["boot"], row["query"]
            newest[place] = max(newest.get(place, 0), row[field])
        return sum(newest.values())

    return {
        "migrations": len(moved),
        "migrations_failed": len(ended) - len(moved),
        "migration_stopped_mean_s": rounded(sum(stopped) / len(stopped)) if stopped else None,
        "migration_stopped_max_s": rounded(max(stopped)) if stopped else None,
        "migration_state_bytes": last("state_copied"),
        "migration_input_bytes": last("input_copied"),
        "planning_messages": last("planning"),
        "plans_followed": last("plans"),
        "stream_bdp": rounded(last("stream_bdp") / 1e6),
        "migration_bdp": rounded(last("copy_bdp") / 1e6),
        "operator_places": _places(recorded, rows["operator_places"], subject.zero_ns),
        "operator_brokers": list(recorded.settings.areas),
    }


def _stopped(recorded: Recorded, steps: Rows) -> list[float]:
    """Of each migration, by the clocks of both brokers."""
    begins = {
        each.name: "handed_over" if each.migrate.method == "live" else "began"
        for each in recorded.settings.queries
        if each.migrate is not None
    }
    times: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in steps:
        key = row["query"], row["operator"], row["migration"]
        times.setdefault(key, {}).setdefault(row["what"], row["t_ns"])
    return [
        max(0.0, (found["took_over"] - found[begins[key[0]]]) / S)
        for key, found in times.items()
        if "took_over" in found and begins[key[0]] in found
    ]


def _places(recorded: Recorded, rows: Rows, zero_ns: int) -> dict[str, list[list[float]]]:
    number = {name: n for n, name in enumerate(recorded.settings.areas)}
    found: dict[str, list[list[float]]] = {}
    for row in sorted(rows, key=lambda row: (row["t_ns"], row["migration"])):
        if row["outcome"] in ("deployed", "moved"):
            line = found.setdefault(f"{row['query']}: {row['operator']}", [])
            at = (row["t_ns"] - zero_ns) / S if row["migration"] else 0.0
            line.append([at, float(number[row["target"]])])
    return found


FIGURES = Figures(frames, values, METRICS, SERIES)
