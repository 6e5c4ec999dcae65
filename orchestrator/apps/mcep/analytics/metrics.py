"""Figures of merit of moving interests, of the whole run: a result may come long after its events.

Strict queries are held against a rehearsal: the same drives, played without a network.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from node_agent.apps.mcep.config import QueryConfig
from node_agent.apps.mcep.telemetry import MOST_ANCESTORS
from orchestrator.apps.mcep.analytics.sharing import METRICS as SHARING
from orchestrator.apps.mcep.analytics.sharing import SERIES as SHARED
from orchestrator.apps.mcep.analytics.sharing import sharing
from orchestrator.apps.mcep.plan import Recorded
from orchestrator.apps.mcep.rehearsal import Expected, Rehearsal
from orchestrator.results.contribution import Breakdown, BreakdownColumn, Column, Figures, Metric, Rows
from orchestrator.results.spark import Reading, Subject, rounded
from orchestrator.runs.manifest import MOVING_FROM

if TYPE_CHECKING:
    import pyarrow as pa

MOST_EVENTS = 100_000
"""Of a run: with more, it is not rehearsed."""
GRACE_S = 10.0
"""A result that could be known so long before the end must have come."""
S = 1e9
_Parts = dict[str, dict[str, float | int | None]]

METRICS = (
    Metric(
        "situations",
        "results that focal objects got",
        "",
        "more",
        averaged=True,
        compared=True,
        gain="results",
        activity=True,
        console=Column(1, "situations", digits=0),
        report=Column(1, "situations", digits=0),
        of_each_run=True,
        meaning=("situations", "results that focal objects got"),
    ),
    Metric(
        "situations_missing",
        "results of strict queries that a rehearsal without a network gives, that could be known 10 s before "
        "the end of the run, and that did not come; not computed for more than 100,000 events of sensors",
        "",
        "less",
        averaged=True,
        console=Column(2, "missing", digits=0, bad_above=0),
        report=Column(2, "missing", digits=0, bad_above=0),
        of_each_run=True,
        meaning=("missing", "results that should have come and did not"),
    ),
    Metric(
        "situations_surplus",
        "results of strict queries that the rehearsal does not give",
        "",
        "less",
        averaged=True,
        console=Column(3, "surplus", digits=0, bad_above=0),
        report=Column(3, "surplus", digits=0, bad_above=0),
    ),
    Metric(
        "situations_out_of_order",
        "results that came after one of a later region, or of a later time where that order is promised",
        "",
        "less",
        averaged=True,
    ),
    Metric(
        "situation_delay_mean_s",
        "mean time from when a result could be known, at its time or at the switch, to when it came",
        "s",
        "less",
        averaged=True,
        compared=True,
        gain="mean delay",
        console=Column(4, "delay mean s"),
        report=Column(4, "delay mean\ns"),
        meaning=("delay", "from when a result could be known to when it came"),
    ),
    Metric("situation_delay_max_s", "the longest such time", "s", "less", averaged=True),
    Metric(
        "interest_switches",
        "switches of interests",
        "",
        "",
        averaged=True,
        console=Column(5, "switches", digits=0),
        report=Column(5, "switches", digits=0),
        of_each_run=True,
    ),
    Metric("sensor_events", "events that sensors saw", "", "", averaged=True),
    Metric(
        "interest_streamed",
        "events that brokers sent to operators, each as often as it was sent",
        "",
        "less",
        averaged=True,
        compared=True,
        gain="events sent",
        console=Column(6, "streamed", digits=0),
        report=Column(6, "streamed", digits=0),
        meaning=("streamed", "events sent to operators, each as often as it was sent"),
    ),
    Metric("interest_skipped", "events that suppression left out", "", "", averaged=True),
    Metric("interest_selections", "selections that operators correlated", "", "less", averaged=True),
    Metric("interest_handovers", "how often a client came to another broker's area", "", "", averaged=True),
    Metric("interest_bytes", "bytes of messages that nodes sent each other", "B", "less", averaged=True),
    Metric(
        "interest_stalls",
        "nodes that said that nothing goes on, each as often as it did",
        "",
        "less",
        averaged=True,
        of_each_run=True,
        meaning=("stalls", "how often a node said that nothing goes on"),
    ),
    Metric(
        "queries",
        "by query: `situations`, `expected`, `missing`, `surplus`, `switches`, `delay_mean_s`, `delay_max_s`",
        shape=_Parts,
        expect=False,
    ),
    *SHARING,
)
BY_QUERY = Breakdown(
    "queries",
    "Queries",
    "query",
    (
        BreakdownColumn("situations", Column(1, "situations", digits=0), Column(1, "situations", digits=0)),
        BreakdownColumn("expected", Column(2, "rehearsed", digits=0), Column(2, "rehearsed", digits=0)),
        BreakdownColumn("missing", Column(3, "missing", digits=0), Column(3, "missing", digits=0)),
        BreakdownColumn("surplus", Column(4, "surplus", digits=0), None),
        BreakdownColumn("switches", Column(5, "switches", digits=0), Column(5, "switches", digits=0)),
        BreakdownColumn("delay_mean_s", Column(6, "delay mean\ns"), None),
        BreakdownColumn("delay_max_s", Column(7, "delay max\ns"), Column(7, "delay max s", digits=2)),
    ),
    "Rehearsed: results of the same drives without a network. Missing: of those, what should have come.",
)
MOST_PLACES = 600
"""Of a query, in the picture."""
SERIES = {
    "situation_delays": dict[str, list[list[float]]],
    "situation_places": dict[str, list[list[float]]],
    **SHARED,
}
"""By query: seconds since the start, delay; x, y. And who shared with whom."""


def frames(reading: Reading) -> Mapping[str, "pa.Table"]:
    return {
        name: reading.columns(name)
        for name in (
            "sensor_events",
            "interest_switches",
            "situations",
            "interest_brokers",
            "interest_clients",
            "interest_links",
            "interest_stalls",
            "selection_managers",
            "shared_selections",
        )
    }


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    recorded = subject.app.plan if subject.app is not None else None
    assert isinstance(recorded, Recorded)
    opened_ns = subject.run.manifest.get(MOVING_FROM)
    opened_ns = opened_ns if isinstance(opened_ns, int) else subject.zero_ns
    ended_s = ((subject.ended_ns or opened_ns) - opened_ns) / S
    expected = _rehearsed(recorded, len(rows["sensor_events"]))
    starts = {(row["query"], row["epoch"]): row["start_ns"] for row in rows["interest_switches"]}
    parts: _Parts = {}
    delays: dict[str, list[list[float]]] = {}
    disordered = 0
    for query in recorded.settings.queries:
        found = sorted(
            (row for row in rows["situations"] if row["query"] == query.name), key=lambda row: row["number"]
        )
        late = []
        for row in found:
            due_ns = max(row["at_ns"], starts.get((query.name, row["epoch"]), 0))
            late.append(max(0.0, (row["t_ns"] - opened_ns - due_ns) / S))
        delays[query.name] = [
            [(row["t_ns"] - subject.zero_ns) / S, delay] for row, delay in zip(found, late, strict=True)
        ]
        disordered += _disordered(query, found)
        switches = sum(row["query"] == query.name for row in rows["interest_switches"])
        parts[query.name] = {
            "situations": len(found),
            **_held_against(expected.get(query.name), found, ended_s),
            "switches": switches,
            "delay_mean_s": rounded(sum(late) / len(late)) if late else None,
            "delay_max_s": rounded(max(late)) if late else None,
        }
    every = [delay for points in delays.values() for _, delay in points]

    def total(key: str) -> int | None:
        known = [each[key] for each in parts.values() if each[key] is not None]
        return int(sum(each or 0 for each in known)) if known else None

    def last(table: str, field: str, *key: str) -> int:
        newest: dict[tuple[Any, ...], int] = {}
        for row in rows[table]:
            place = tuple(row[name] for name in ("node", "boot", *key))
            newest[place] = max(newest.get(place, 0), row[field])
        return sum(newest.values())

    return {
        "situations": total("situations"),
        "situations_missing": total("missing"),
        "situations_surplus": total("surplus"),
        "situations_out_of_order": disordered,
        "situation_delay_mean_s": rounded(sum(every) / len(every)) if every else None,
        "situation_delay_max_s": rounded(max(every)) if every else None,
        "interest_switches": len(rows["interest_switches"]),
        "sensor_events": len(rows["sensor_events"]),
        "interest_streamed": last("interest_brokers", "streamed"),
        "interest_skipped": last("interest_brokers", "skipped"),
        "interest_selections": last("interest_brokers", "processed"),
        "interest_handovers": last("interest_clients", "handovers"),
        "interest_bytes": last("interest_links", "bytes", "neighbour"),
        "interest_stalls": sum(bool(row["reason"]) for row in rows["interest_stalls"]),
        "queries": parts,
        "situation_delays": delays,
        "situation_places": {query.name: _places(query.name, rows) for query in recorded.settings.queries},
        **sharing(rows),
    }


def _rehearsed(recorded: Recorded, events: int) -> dict[str, list[Expected]]:
    """By strict query, what must come; empty if there are too many events. Of a query with prepared or
    shared graphs nobody can say it: that depends on which of them were ready at a switch."""
    strict = {
        each.name
        for each in recorded.settings.queries
        if each.completeness != "best_effort" and not each.has_graphs
    }
    if events > MOST_EVENTS or not strict:
        return {}
    return {name: found for name, found in Rehearsal(recorded).play().items() if name in strict}


def _places(query: str, rows: Mapping[str, Rows]) -> list[list[float]]:
    """Where its situations were, each place once: one that lies in several regions is delivered for each."""
    own = (row for row in rows["situations"] if row["query"] == query)
    found = dict.fromkeys((round(row["x"]), round(row["y"])) for row in own)
    return [list(map(float, place)) for place in list(found)[:MOST_PLACES]]


def _held_against(
    expected: Sequence[Expected] | None, found: Rows, ended_s: float
) -> dict[str, float | int | None]:
    if expected is None:
        return {"expected": None, "missing": None, "surplus": None}
    wanted = {(each.epoch, each.type, each.at_ns, each.ancestors[:MOST_ANCESTORS]): each for each in expected}
    got = {(row["epoch"], row["type"], row["at_ns"], tuple(row["ancestors"])) for row in found}
    due = {key for key, each in wanted.items() if each.due_s + GRACE_S <= ended_s}
    surplus = len(found) - len(got & wanted.keys())  # a result that came twice is one too many
    return {"expected": len(expected), "missing": len(due - got), "surplus": surplus}


def _disordered(query: QueryConfig, found: Rows) -> int:
    if query.order == "none":
        return 0
    keys = [(row["epoch"], row["at_ns"] if query.order == "spatiotemporal" else 0) for row in found]
    latest, count = (0, 0), 0
    for key in keys:
        count += key < latest
        latest = max(latest, key)
    return count


FIGURES = Figures(frames, values, METRICS, SERIES)


def notes(entry: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    if len(metrics) != 1 or not metrics[0]["interest_stalls"]:
        return []
    return [
        "Some nodes stalled: the table `interest_stalls` and `rove explain --at` say what they waited for."
    ]
