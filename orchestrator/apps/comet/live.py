"""The detection of events as it is watched: detections and their delays, who is connected, what waits.

Departures from what the plan assumed are looked for every ``LOOK_S`` seconds while sources are open; each is
told once as an event of the run.
"""

from collections.abc import Iterator
from typing import Any

from node_agent.apps.comet.telemetry import (
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventOccurred,
    EventStore,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.comet.assumptions import departures
from orchestrator.apps.comet.measuring import Measuring
from orchestrator.apps.comet.plan import Recorded
from orchestrator.runs.timeline import Change, Seconds

LOOK_S = 10.0
NS = 1e9
_DETECTED, _OCCURRED, _DROPPED = tag_of(EventDetected), tag_of(EventOccurred), tag_of(EventDropped)
_LINK, _CONTACT, _STORE = tag_of(EventLink), tag_of(EventContact), tag_of(EventStore)


class _Course:
    """Of one pattern."""

    def __init__(self) -> None:
        self.count = self.late = 0
        self.delay: float | None = None
        self.worst: float | None = None
        self.last: tuple[str, ...] = ()


class DetectView:
    def __init__(self, app: str, recorded: Recorded, seconds: Seconds) -> None:
        self._app = app
        self._recorded = recorded
        self._seconds = seconds
        self._courses = {promise.name: _Course() for promise in recorded.promises}
        self._promised = {promise.name: promise.delay for promise in recorded.promises}
        self._sources = {
            event.name: node for node, config in recorded.configs.items() for event in config.events
        }
        self._numbers: dict[str, int] = {}
        """By node, the last detection: one that was killed may tell it again."""
        self._measuring = Measuring(recorded)
        self._links: dict[tuple[str, str], Any] = {}
        self._connected: dict[tuple[str, str], tuple[bool, float]] = {}
        """By node and neighbour: whether they are, and since when."""
        self._stores: dict[str, Any] = {}
        self._dropped: dict[str, int] = {}
        self._said: dict[tuple[str, str], Any] = {}
        """By channel and key, what was told last."""
        self._opened: float | None = None
        self._closed = False
        self._looked = 0.0

    def head(self) -> dict[str, Any]:
        return {
            "patterns": [
                {
                    "name": each.name,
                    "pattern": each.pattern,
                    "sink": each.sink,
                    "tolerance": each.tolerance,
                    "promised": each.delay,
                }
                for each in self._recorded.promises
            ],
            "carriers": _carriers(self._recorded),
        }

    def take(self, node: str, t: float, record: Any) -> Iterator[Change]:
        kind = record.kind
        if kind == _DETECTED:
            self._detected(node, t, record)
        elif kind in (_OCCURRED, _CONTACT):
            self._measuring.take(node, t, record)
            if kind == _CONTACT:
                self._connected[node, record.neighbour] = record.up, round(t, 3)
            elif self._opened is None:
                self._opened = t
        elif kind == _LINK:
            self._links[node, record.neighbour] = record
        elif kind == _STORE:
            self._stores[node] = record
        elif kind == _DROPPED:
            self._dropped[node] = self._dropped.get(node, 0) + 1
        return iter(())

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        """An agent that is not there is connected to nobody."""
        for pair in [pair for pair in self._connected if pair[0] == node]:
            if self._connected[pair][0]:
                self._connected[pair] = False, round(t, 3)

    def measure(self, t: float) -> None:
        self._opened = t if self._opened is None else min(self._opened, t)

    def measured(self, t: float) -> None:
        """Sources close: nothing of the rates that follow says anything."""
        self._closed = True

    def end(self, t: float) -> None:
        """Nothing is summed up."""

    def tick(self, t: float) -> Iterator[Change]:
        for name, course in self._courses.items():
            yield from self._tell(t, "detection", name, _course(course))
        for pair, record in self._links.items():
            yield from self._tell(t, "carried", ">".join(pair), self._carried(pair, record))
        for node, record in self._stores.items():
            yield from self._tell(t, "kept", node, self._kept(node, record))
        if t - self._looked >= LOOK_S and self._opened is not None and not self._closed:
            self._looked = t
            yield from self._departures(t, self._opened)

    def _tell(self, t: float, channel: str, key: str, value: Any) -> Iterator[Change]:
        if self._said.get((channel, key)) != value:
            self._said[channel, key] = value
            yield Change(t, self._app, channel, key, value)

    def _detected(self, node: str, t: float, record: Any) -> None:
        course = self._courses.get(record.pattern)
        if course is None or record.number <= self._numbers.get(node, 0):
            return
        self._numbers[node] = record.number
        event = record.constituents[-1].rpartition("#")[0] if record.constituents else ""
        delay = t - self._seconds(self._sources.get(event, node), record.end_ns)
        course.count += 1
        course.late += delay > self._promised[record.pattern]
        course.delay = round(delay, 3)
        course.worst = max(course.delay, course.worst or 0.0)
        course.last = record.constituents

    def _carried(self, pair: tuple[str, str], record: Any) -> dict[str, Any]:
        up, since = self._connected.get(pair, (False, 0.0))
        return {
            "up": up,
            "since": since,
            "instances": record.instances,
            "requests": record.requests,
            "bytes": record.bytes,
            "waiting": record.waiting,
            "waiting_bytes": record.waiting_bytes,
        }

    def _kept(self, node: str, record: Any) -> dict[str, Any]:
        return {
            "instances": record.instances,
            "matches": record.matches,
            "undecided": record.undecided,
            "dropped": self._dropped.get(node, 0),
        }

    def _departures(self, t: float, opened: float) -> Iterator[Change]:
        found = {
            each.subject: each for each in departures(self._recorded, self._measuring.measured(opened, t))
        }
        for key in [key for channel, key in self._said if channel == "assumption" and key not in found]:
            yield from self._tell(t, "assumption", key, None)
        for subject, each in found.items():
            if ("assumption", subject) not in self._said:
                text = f"{self._app}: the plan's assumptions no longer hold: {each.text}"
                yield Change(t, "", "event", "", {"kind": "plan", "text": text, "level": "warn"})
            value = {"text": each.text, "planned": each.planned, "measured": round(each.measured, 6)}
            yield from self._tell(t, "assumption", subject, value)


def _course(course: _Course) -> dict[str, Any]:
    return {
        "count": course.count,
        "late": course.late,
        "delay": course.delay,
        "worst": course.worst,
        "last": list(course.last),
    }


def _carriers(recorded: Recorded) -> list[dict[str, Any]]:
    """Each direction of a link that streams use: what is pushed over it, and what only when asked for."""
    planned = {(each.lower, each.upper): each.edp for each in recorded.links}
    streams = {
        stream.number: stream for config in recorded.configs.values() for stream in config.plan.streams
    }
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for stream in streams.values():
        for lower, upper in zip(stream.path, stream.path[1:], strict=False):
            used = found.setdefault((lower, upper), {"pushed": [], "pulled": []})
            names = [f"!{event}" if stream.absent else event for event in stream.events]
            listed = used["pulled" if stream.pulled else "pushed"]
            listed += [name for name in names if name not in listed]
    return [
        {
            "name": f"{lower} > {upper}",
            "from": lower,
            "to": upper,
            "down": planned.get((lower, upper)),
            **used,
        }
        for (lower, upper), used in found.items()
    ]
