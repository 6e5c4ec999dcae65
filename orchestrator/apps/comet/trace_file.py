"""When events occurred, from a CSV file: one event, or several by their names.

event,start,end
smoke,12.5,14
heat,13,13

Times are seconds after sources open. Other headers are ``event,start``, ``start,end`` and ``t``; without ends
each instance ends when it starts.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from orchestrator.apps.comet.section import MOST_TIMES, DetectSettings, EventFile
from orchestrator.mobility.trace_file import Place, TraceError, read_table
from orchestrator.spec import problems as spec_problems
from orchestrator.spec.problems import Finding, did_you_mean, shown

HEADERS = (("event", "start", "end"), ("event", "start"), ("start", "end"), ("t",))
MOST_LINES = 1_000_000
MOST_PROBLEMS = 20
LATEST_S = 30 * 86400.0

Times = tuple[tuple[float, float], ...]


@dataclass
class EventTrace:
    """What a file says. ``times``: by event, or under "" if the file names none; ``problems``: by line."""

    file: Path
    times: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    problems: list[TraceError] = field(default_factory=list)

    def of(self, event: str) -> Times:
        """Returns starts and ends of one event in order of the ends. Raises TraceError."""
        place = Place(str(self.file))
        found = self.times.get("", self.times.get(event, []))
        if not found:
            raise place.error(f"lists no event {shown(event)}", did_you_mean(event, self.times))
        if len(found) > MOST_TIMES:
            raise place.error(f"lists {shown(event)} {len(found):,} times: at most {MOST_TIMES:,} are taken")
        return tuple(sorted(found, key=lambda each: each[1]))


def listed_times(
    section: DetectSettings, until: float, at: spec_problems.Place
) -> tuple[dict[str, Times], list[Finding]]:
    """Returns the times of events that have some, from the section or from files, and what is wrong with
    these. ``at``: the place of the events in the experiment; ``until``: when the run is over.
    """
    times: dict[str, Times] = {}
    findings: list[Finding] = []
    faulty: set[EventFile] = set()
    for name, said in section.events.items():
        if said.times is not None:
            times[name] = said.times
        elif said.trace is not None and said.trace not in faulty:
            trace = _read(said.trace)
            problems = list(trace.problems)
            if problems:
                faulty.add(said.trace)  # told once, also if other events are in this file
            else:
                try:
                    times[name] = trace.of(name)
                except TraceError as error:
                    problems = [error]
            findings += [Finding((*at, name, "trace"), str(each), each.hint) for each in problems]
        if name in times and (first := min(times[name])[0]) >= until:
            text = f"occurs at {first:g} s for the first time, and the run is over after {until:g} s"
            place = (*at, name, "times" if said.trace is None else "trace")
            findings.append(Finding(place, text, "times are seconds after sources open"))
    return times, findings


# The cells of a sweep are planned one by one, and mostly read the same file.
@lru_cache(maxsize=4)
def _read(file: EventFile) -> EventTrace:
    return read_event_trace(file.path)


def read_event_trace(file: Path) -> EventTrace:
    """Reads the file and lists what is wrong with it, each with its line; the first 20 will do."""
    trace = EventTrace(file)
    try:
        columns, rows = read_table(file, HEADERS)
    except TraceError as error:
        trace.problems.append(error)
        return trace
    for count, (place, row) in enumerate(rows, 1):
        try:
            if count > MOST_LINES:
                raise place.error(
                    f"more than {MOST_LINES:,} instances are not read", "use a part of the trace"
                )
            event, start, end = _instance(place, dict(zip(columns, place.values(row, columns), strict=True)))
        except TraceError as error:
            trace.problems.append(error)
            if len(trace.problems) == MOST_PROBLEMS or count > MOST_LINES:
                break
        else:
            trace.times.setdefault(event, []).append((start, end))
    if not trace.times and not trace.problems:
        trace.problems.append(Place(str(file)).error("lists no event"))
    return trace


def _instance(place: Place, row: dict[str, str]) -> tuple[str, float, float]:
    event = row.get("event", "")
    if "event" in row and not event:
        raise place.error("the event has no name")
    first = "t" if "t" in row else "start"
    start = _time(place, row[first], first)
    end = _time(place, row["end"], "end") if "end" in row else start
    if end < start:
        raise place.error(f"ends at {end:g} s, before it starts at {start:g} s")
    return event, start, end


def _time(place: Place, text: str, what: str) -> float:
    seconds = place.number(text, what)
    if not 0 <= seconds <= LATEST_S:
        raise place.error(f"{what} is {seconds:g} s: it must be from 0 to 30 days")
    return seconds
