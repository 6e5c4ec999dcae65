"""Explains a detection from the telemetry: its constituents, what was asked for, and how long each waited."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from node_agent.apps.comet.telemetry import EventArrived, EventAsked, EventDetected, EventOccurred
from node_agent.telemetry.kinds import tag_of
from orchestrator.answers import Answer
from orchestrator.apps.comet.assumptions import departures
from orchestrator.apps.comet.plan import Recorded
from orchestrator.apps.comet.reading import RunRecords, read_run
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory

_KINDS = {tag_of(each) for each in (EventArrived, EventAsked, EventDetected, EventOccurred)}
NS = 1e9


class Step(NamedTuple):
    """Something that happened on the way. ``at_s``: since the run's first record."""

    at_s: float
    node: str
    text: str


def explained_event(directory: RunDirectory, app: str, event: str) -> Answer:
    """``event``: a detection, like ``fire#3``: the third at the sink of ``fire``."""
    recorded, records, zero_ns = _read(read_run(directory, app))
    pattern, _, number = event.rpartition("#")
    promise = next((each for each in recorded.promises if each.name == pattern), None)
    detected = [
        each for each in records if each["kind"] == tag_of(EventDetected) and each["pattern"] == pattern
    ]
    if promise is None or not number.isdigit():
        names = ", ".join(f"{each.name}#1" for each in recorded.promises)
        raise BadInput(f"--event {event}: name a detection by pattern and number, such as {names}")
    detected.sort(key=lambda each: (each["t_ns"], each["number"]))
    if not 1 <= int(number) <= len(detected):
        raise BadInput(f"--event {event}: {pattern} was detected {len(detected)} times")
    found = detected[int(number) - 1]
    told = Step(round((found["t_ns"] - zero_ns) / NS, 3), found["node"], "detected")
    steps = [*sorted(_steps(found, records, zero_ns)), told]
    delay = (found["t_ns"] - found["end_ns"]) / NS
    head = (
        f"{event} at {found['node']}: {promise.pattern} with {', '.join(found['constituents'])}, "
        f"{delay:.1f} s after the last of them ({promise.delay:.1f} s promised)"
    )
    lines = [f"{step.at_s:9.1f} s  {step.node}: {step.text}" for step in steps]
    document = {
        "run": directory.id,
        "app": app,
        "event": event,
        "node": found["node"],
        "constituents": found["constituents"],
        "delay_s": round(delay, 6),
        "promised_s": promise.delay,
        "steps": [step._asdict() for step in steps],
    }
    from rich.text import Text

    return Answer(document, [Text(each) for each in (head, *lines)])


def listed_events(directory: RunDirectory, app: str, most: int) -> Answer:
    """The newest detections, as ``--event`` names them."""
    run = read_run(directory, app)
    recorded, records, zero_ns = _read(run)
    left = [each.text for each in departures(recorded, run.measured())]
    rows: list[dict[str, Any]] = []
    for promise in recorded.promises:
        own = [
            each
            for each in records
            if each["kind"] == tag_of(EventDetected) and each["pattern"] == promise.name
        ]
        for number, each in enumerate(sorted(own, key=lambda each: (each["t_ns"], each["number"])), 1):
            rows.append(
                {
                    "event": f"{promise.name}#{number}",
                    "at_s": round((each["t_ns"] - zero_ns) / NS, 3),
                    "delay_s": round((each["t_ns"] - each["end_ns"]) / NS, 3),
                    "constituents": each["constituents"],
                }
            )
    rows.sort(key=lambda row: row["at_s"])
    shown = rows[-most:]
    from rich.text import Text

    lines = [
        f"{row['at_s']:9.1f} s  {row['event']}: {', '.join(row['constituents'])}, {row['delay_s']:.1f} s"
        for row in shown
    ]
    lines.append(f"{len(rows)} detections; --event NAME#NUMBER tells how one came about")
    lines += [f"the plan's assumptions no longer hold: {text}" for text in left]
    if left:
        lines.append(f"rove plan FILE --measured {directory.id} plans with what was measured")
    document = {"run": directory.id, "app": app, "detections": shown, "departures": left}
    return Answer(document, [Text(each) for each in lines])


def _steps(found: dict[str, Any], records: list[dict[str, Any]], zero_ns: int) -> Iterator[Step]:
    constituents = set(found["constituents"])
    events = {each.rpartition("#")[0] for each in constituents}
    for each in records:
        at_s = round((each["t_ns"] - zero_ns) / NS, 3)
        name = f"{each.get('event')}#{each.get('number')}"
        if each["t_ns"] > found["t_ns"]:
            continue
        if each["kind"] == tag_of(EventOccurred) and name in constituents:
            yield Step(at_s, each["node"], f"{name} occurred")
        elif (
            each["kind"] == tag_of(EventArrived)
            and name in constituents
            and each["pattern"] == found["pattern"]
        ):
            yield Step(at_s, each["node"], f"{name} was here to match")
        elif each["kind"] == tag_of(EventAsked) and each["pattern"] == found["pattern"]:
            touches = each["from_ns"] <= found["end_ns"] and found["start_ns"] <= each["until_ns"]
            if touches:
                span = f"{(each['from_ns'] - zero_ns) / NS:.1f} to {(each['until_ns'] - zero_ns) / NS:.1f} s"
                watched = "" if events & set(each["events"]) else ", which must be absent"
                yield Step(at_s, each["node"], f"asked for {', '.join(each['events'])} from {span}{watched}")


def _read(run: RunRecords) -> tuple[Recorded, list[dict[str, Any]], int]:
    """Returns the plan, records of what became of events with corrected times, and the first time."""
    found = [
        {
            **{name: getattr(seen.record, name) for name in _FIELDS},
            "node": seen.node,
            "kind": seen.record.kind,
            "t_ns": seen.t_ns,
        }
        for seen in run.records
        if seen.record.kind in _KINDS
    ]
    return run.recorded, found, run.zero_ns


_FIELDS = (
    "event",
    "number",
    "pattern",
    "start_ns",
    "end_ns",
    "constituents",
    "events",
    "from_ns",
    "until_ns",
)
