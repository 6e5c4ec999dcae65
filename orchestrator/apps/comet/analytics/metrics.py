"""Figures of merit of the detection of events: by pattern, by link, and in all.

They are of the whole run, not of the measured window alone: a detection may come long after its events.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.grammar import parse
from node_agent.apps.comet.reference import detections
from orchestrator.apps.comet.assumptions import Measured, departures
from orchestrator.apps.comet.measuring import LinkTimes, measured_rates
from orchestrator.apps.comet.plan import Promise, Recorded
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
from orchestrator.runs.manifest import MOVING_FROM

_FRAMES = "orchestrator.apps.comet.analytics.figure_frames:frames"
MOST_OCCURRENCES = 2000
REQUEST_SHARE = 0.1
"""What a request, or a reference to an instance that went before, costs beside an instance."""
S = 1e9

_Parts = dict[str, dict[str, float | int | None]]
METRICS = (
    Metric(
        "detections",
        "detections that sinks had, each once",
        "",
        "more",
        averaged=True,
        activity=True,
        console=Column(1, "detections", digits=0),
        report=Column(1, "detections", digits=0),
        of_each_run=True,
        meaning=("detections", "how often a pattern was detected"),
    ),
    Metric(
        "detections_missed",
        "detections that an observer who knows all events would have made so early that the promised delay "
        "was over before the run ended, and that no sink had; not computed for more than 2,000 occurrences",
        "",
        "less",
        averaged=True,
        console=Column(2, "missed", digits=0, bad_above=0),
        report=Column(2, "missed", digits=0, bad_above=0),
        of_each_run=True,
        meaning=("missed", "what an observer who knows all events saw and no sink had in time"),
    ),
    Metric(
        "detections_invented",
        "detections that such an observer would not have made; not computed for more than 2,000 occurrences",
        "",
        "less",
        averaged=True,
    ),
    Metric(
        "detections_duplicated", "records of detections that the sink had before", "", "less", averaged=True
    ),
    Metric(
        "detections_late",
        "detections that came later than the plan promised",
        "",
        "less",
        averaged=True,
        console=Column(3, "late", digits=0, bad_above=0),
        report=Column(3, "late", digits=0, bad_above=0),
        meaning=("late", "later than the plan promised"),
    ),
    Metric(
        "detection_delay_mean_s",
        "mean time from the last constituent to the detection",
        "s",
        "less",
        averaged=True,
    ),
    Metric(
        "detection_delay_max_s",
        "largest time from the last constituent to the detection",
        "s",
        "less",
        averaged=True,
        console=Column(4, "delay max s", digits=1),
        report=Column(4, "delay max\ns", digits=1),
        of_each_run=True,
        meaning=("delay max", "the longest time from the last event to its detection"),
    ),
    Metric(
        "detection_delay_promised_s", "the largest delay that the plans promise", "s", "less", averaged=True
    ),
    Metric(
        "detection_cost",
        "Σ over links: cost factor × (instances + 0.1 × (requests and references)) per minute of the run",
        "/min",
        "less",
        averaged=True,
        console=Column(5, "cost /min"),
        report=Column(5, "cost\nper minute"),
        of_each_run=True,
        meaning=("cost", "of what links carried, by the plan's cost factors"),
    ),
    Metric("detection_cost_planned", "the same as the plan estimated it", "/min", "less", averaged=True),
    Metric(
        "event_bytes",
        "bytes that nodes sent each other to detect events, without headers",
        "B",
        "less",
        averaged=True,
    ),
    Metric(
        "event_waiting_max_bytes",
        "most bytes that waited at one node for one neighbour",
        "B",
        "less",
        averaged=True,
    ),
    Metric("event_dropped", "instances and requests that full stores gave up", "", "less", averaged=True),
    Metric(
        "plan_departures",
        "events that occurred, and links that were down, so much more or less than the plan assumed that "
        "chance hardly explains it",
        "",
        "less",
        averaged=True,
        of_each_run=True,
        meaning=("departures", "what no longer was as the plan assumed"),
    ),
    Metric(
        "assumptions",
        "by event and link: `planned` and `measured` rate per minute or mean seconds without a connection, "
        "and `departed`: 1 if they differ by more than chance",
        shape=_Parts,
        expect=False,
    ),
    Metric(
        "patterns",
        "by pattern: `detections`, `expected`, `missed`, `late`, `delay_mean_s`, `delay_max_s`, `promised_s`",
        shape=_Parts,
        expect=False,
    ),
    Metric(
        "links",
        "by link, like `bus > base`: `instances`, `planned`, `requests`, `marks`, `bytes`, `contacts`, "
        "`waiting_max_bytes`",
        shape=_Parts,
        expect=False,
    ),
)

BY_PATTERN = Breakdown(
    "patterns",
    "Patterns",
    "pattern",
    (
        BreakdownColumn("detections", Column(1, "detections", digits=0), Column(1, "detections", digits=0)),
        BreakdownColumn("expected", Column(2, "there were", digits=0), None),
        BreakdownColumn("missed", Column(3, "missed", digits=0), Column(3, "missed", digits=0)),
        BreakdownColumn("late", Column(4, "late", digits=0), Column(4, "late", digits=0)),
        BreakdownColumn("delay_mean_s", Column(5, "delay mean\ns", digits=1), None),
        BreakdownColumn(
            "delay_max_s", Column(6, "delay max\ns", digits=1), Column(6, "delay max s", digits=1)
        ),
        BreakdownColumn("promised_s", Column(7, "promised\ns", digits=1), Column(7, "promised s", digits=1)),
    ),
    "There were: by an observer who knows all events. Missed: of those, what was due before the run ended.",
)
BY_LINK = Breakdown(
    "links",
    "Links",
    "link",
    (
        BreakdownColumn("instances", Column(1, "instances", digits=0), Column(1, "instances", digits=0)),
        BreakdownColumn("planned", Column(2, "planned", digits=0), Column(2, "planned", digits=0)),
        BreakdownColumn("requests", Column(3, "requests", digits=0), None),
        BreakdownColumn("marks", Column(4, "marks", digits=0), None),
        BreakdownColumn("bytes", Column(5, "kB", 1e-3, 1), Column(5, "kB", 1e-3, 1)),
        BreakdownColumn("contacts", Column(6, "contacts", digits=0), None),
        BreakdownColumn("waiting_max_bytes", Column(7, "waited at most\nkB", 1e-3, 1), None),
    ),
    "Planned: instances that the plan expects for a run of this length. Marks say how complete streams are.",
)

BY_ASSUMPTION = Breakdown(
    "assumptions",
    "What the plan assumed",
    "assumption",
    (
        BreakdownColumn("planned", Column(1, "planned", digits=2), Column(1, "planned", digits=2)),
        BreakdownColumn("measured", Column(2, "measured", digits=2), Column(2, "measured", digits=2)),
        BreakdownColumn(
            "departed",
            Column(3, "departed", digits=0, bad_above=0),
            Column(3, "departed", digits=0, bad_above=0),
        ),
    ),
    "Rates are per minute, links in mean seconds without a connection. Departed: chance hardly explains it.",
)

SERIES = {
    "detection_delays": dict[str, list[list[float]]],
    "event_waiting": dict[str, list[list[float]]],
}
"""By pattern: seconds since the start, delay. By node: seconds since the start, bytes that wait."""


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    recorded = subject.app.plan if subject.app is not None else None
    assert isinstance(recorded, Recorded)
    ended_ns = subject.ended_ns or max((row["t_ns"] for row in rows["detections"]), default=0)
    patterns = {
        promise.name: _pattern(promise, rows["detections"], rows["occurrences"], ended_ns)
        for promise in recorded.promises
    }
    seconds = max((ended_ns - subject.zero_ns) / S, 1.0)
    links = _links(recorded, rows["links"], seconds)
    assumed = _assumptions(recorded, _measured(recorded, subject, rows, ended_ns))
    delays = [row["delay_s"] for row in rows["detections"] if row["delay_s"] is not None]
    costs = {(each.lower, each.upper): each.cost for each in recorded.links}
    cost = 0.0
    for row in rows["links"]:
        up, down = (row["node"], row["neighbour"]), (row["neighbour"], row["node"])
        price = costs.get(up, costs.get(down, 0.0))
        cost += price * (row["instances"] + REQUEST_SHARE * (row["requests"] + row["references"]))

    def total(key: str) -> int | None:
        found = [each[key] for each in patterns.values()]
        return None if any(each is None for each in found) else int(sum(each or 0 for each in found))

    return {
        "detections": total("detections"),
        "detections_missed": total("missed"),
        "detections_invented": total("invented"),
        "detections_duplicated": sum(row["told"] - 1 for row in rows["detections"]),
        "detections_late": total("late"),
        "detection_delay_mean_s": rounded(sum(sorted(delays)) / len(delays)) if delays else None,
        "detection_delay_max_s": rounded(max(delays)) if delays else None,
        "detection_delay_promised_s": rounded(max(promise.delay for promise in recorded.promises)),
        "detection_cost": rounded(cost * 60 / seconds),
        "detection_cost_planned": rounded(recorded.cost * 60),
        "event_bytes": sum(row["bytes"] for row in rows["links"]),
        "event_waiting_max_bytes": max((row["waiting_bytes_max"] for row in rows["links"]), default=0),
        "event_dropped": next((row["dropped"] for row in rows["dropped"]), 0),
        "plan_departures": sum(int(each["departed"] or 0) for each in assumed.values()),
        "assumptions": assumed,
        "patterns": patterns,
        "links": links,
        "detection_delays": _by(rows["detections"], "pattern", "delay_s", subject),
        "event_waiting": _by(rows["waiting"], "node", "bytes", subject),
    }


def _pattern(promise: Promise, found: Rows, occurred: Rows, ended_ns: int) -> dict[str, float | int | None]:
    own = [row for row in found if row["pattern"] == promise.name]
    delays = sorted(row["delay_s"] for row in own if row["delay_s"] is not None)
    expected = missed = invented = None
    if len(occurred) <= MOST_OCCURRENCES:
        instances = [
            Instance(row["start_ns"] / S, row["end_ns"] / S, row["event"], row["number"]) for row in occurred
        ]
        true = {
            tuple(f"{one.event}#{one.number}" for one in each.constituents): each.end
            for each in detections(parse(promise.pattern), instances)
        }
        seen = {tuple(row["constituents"]) for row in own}
        due = {keys for keys, end in true.items() if end + promise.delay <= ended_ns / S}
        expected, missed, invented = len(true), len(due - seen), len(seen - true.keys())
    return {
        "detections": len(own),
        "expected": expected,
        "missed": missed,
        "invented": invented,
        "late": sum(delay > promise.delay for delay in delays),
        "delay_mean_s": rounded(sum(delays) / len(delays)) if delays else None,
        "delay_max_s": rounded(delays[-1]) if delays else None,
        "promised_s": rounded(promise.delay),
    }


def _links(recorded: Recorded, rows: Rows, seconds: float) -> _Parts:
    planned = {(each.lower, each.upper): each.instances * seconds for each in recorded.links}
    found: _Parts = {}
    for row in sorted(rows, key=lambda row: (str(row["node"]), str(row["neighbour"]))):
        pair = (row["node"], row["neighbour"])
        found[" > ".join(pair)] = {
            "instances": row["instances"],
            "planned": rounded(planned.get(pair, 0.0)),
            "requests": row["requests"],
            "marks": row["marks"],
            "bytes": row["bytes"],
            "contacts": row["connections"],
            "waiting_max_bytes": row["waiting_bytes_max"],
        }
    return found


def _measured(recorded: Recorded, subject: Subject, rows: Mapping[str, Rows], ended_ns: int) -> Measured:
    zero, now = subject.zero_ns, (ended_ns - subject.zero_ns) / S
    opened_ns = subject.run.manifest.get(MOVING_FROM)
    opened = (opened_ns - zero) / S if isinstance(opened_ns, int) and zero <= opened_ns <= ended_ns else 0.0
    counts = {row["event"]: row["count"] for row in rows["counts"]}
    links = {
        (node, other): LinkTimes().seen(now)
        for node, config in recorded.configs.items()
        for other in config.plan.neighbours
    }
    for row in rows["contacts"]:
        links[row["node"], row["neighbour"]] = LinkTimes(
            row["downs"],
            row["ups"],
            first_s=(row["first_ns"] or 0) / S,
            down_s=(row["down_ns"] or 0) / S,
            up_s=(row["up_ns"] or 0) / S,
            longest_s=(row["longest_ns"] or 0) / S,
            since=None if row["up"] else (row["t_ns"] - zero) / S,
        ).seen(now)
    return Measured(measured_rates(recorded, counts, opened, now), links)


def _assumptions(recorded: Recorded, measured: Measured) -> _Parts:
    departed = {each.subject: each.measured for each in departures(recorded, measured)}
    found: _Parts = {}
    for event, planned in recorded.rates.items():
        rate = measured.rates.get(event)
        if rate is not None:
            values = rounded(planned * 60), rounded(rate.rate * 60)
            found[f"{event} per minute"] = _assumption(*values, event in departed)
    for link in recorded.links:
        name, seen = f"{link.lower} > {link.upper}", measured.link(link.lower, link.upper)
        if seen is not None and link.edp is not None:
            down = departed.get(name, seen.mean_down)
            found[f"{name} down s"] = _assumption(rounded(link.edp), rounded(down), name in departed)
    return found


def _assumption(planned: float, measured: float, departed: bool) -> dict[str, float | int | None]:
    return {"planned": planned, "measured": measured, "departed": int(departed)}


def _by(rows: Rows, key: str, value: str, subject: Subject) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for row in sorted(rows, key=lambda row: (str(row[key]), row["t_ns"], row[value] or 0)):
        if row[value] is not None:
            found.setdefault(row[key], []).append([(row["t_ns"] - subject.zero_ns) / S, float(row[value])])
    return found


FIGURES = Figures(Later(_FRAMES), values, METRICS, SERIES)


def notes(entry: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """What full stores gave up, and what the plan no longer can rely on, of a single run."""
    if len(metrics) != 1:
        return []
    found = []
    if dropped := metrics[0]["event_dropped"]:
        found.append(f"Full stores gave up {dropped} instances or requests: allow more (store:).")
    left = [
        f"{name} {each['measured']:.3g}, planned {each['planned']:.3g}"
        for name, each in (metrics[0].get("assumptions") or {}).items()
        if each["departed"]
    ]
    if left:
        advice = "`rove plan FILE --measured RUN` plans with what was measured"
        found.append(f"What the plan assumed no longer holds: {'; '.join(left)}. {advice}.")
    return found
