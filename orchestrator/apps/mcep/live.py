"""Moving interests as they are watched: situations and their delays, where interests are, who waits for whom.

A broker that waits for somebody is told as an event of the run.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from node_agent.apps.mcep.telemetry import (
    ENDLESS_NS,
    InterestBroker,
    InterestStalled,
    InterestSwitched,
    SensorRead,
    SituationFound,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.mcep.plan import Recorded, query_line
from orchestrator.runs.timeline import Change

NS = 1e9
_FOUND, _SWITCHED, _BROKER = tag_of(SituationFound), tag_of(InterestSwitched), tag_of(InterestBroker)
_STALLED, _READ = tag_of(InterestStalled), tag_of(SensorRead)


class InterestView:
    def __init__(self, app: str, recorded: Recorded) -> None:
        self._app, self._recorded = app, recorded
        self._values: dict[tuple[str, str], dict[str, Any]] = {}
        """By channel and key, as they are now."""
        self._said: dict[tuple[str, str], dict[str, Any]] = {}
        self._opened: float | None = None
        """When drives began, as far as readings tell."""
        self._starts: dict[tuple[str, int], float] = {}

    def head(self) -> dict[str, Any]:
        settings = self._recorded.settings
        return {
            "situations": [
                {
                    "name": each.name,
                    "focal": each.focal,
                    "home": each.home,
                    "shape": each.shape,
                    "text": query_line(each),
                }
                for each in settings.queries
            ],
            "brokers": list(settings.areas),
            "areas": [
                {"broker": name, "corners": [list(corner) for corner in self._corners(name)]}
                for name in settings.areas
            ],
        }

    def _corners(self, broker: str) -> Iterable[tuple[float, float]]:
        """Of the area that a broker serves."""
        x0, y0, x1, y1 = self._recorded.settings.areas[broker]
        box = ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
        return self._recorded.settings.polygons.get(broker, box)

    def take(self, node: str, t: float, record: Any) -> Iterator[Change]:
        kind = record.kind
        if kind == _READ:
            began = t - record.at_ns / NS
            self._opened = began if self._opened is None else min(self._opened, began)
        elif kind == _SWITCHED:
            self._starts[record.query, record.epoch] = record.start_ns / NS
            place = {"x": record.x, "y": record.y, "radius": record.radius}
            value = {"epoch": record.epoch, "start": record.start_ns / NS, **place}
            self._values["region", record.query] = value
        elif kind == _FOUND:
            self._found(t, record)
        elif kind == _BROKER:
            self._values["served", node] = {
                "arrived": None if record.arrived_ns >= ENDLESS_NS else round(record.arrived_ns / NS, 3),
                "stored": record.stored,
                "waiting": record.waiting,
                "streamed": record.streamed,
            }
        elif kind == _STALLED and record.reason:
            text = f"{self._app}: {node}: {record.reason}"
            yield Change(t, "", "event", "", {"kind": "stall", "text": text, "level": "warn"})

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        """Brokers say whom they wait for."""

    def measure(self, t: float) -> None:
        """Nothing is summed up."""

    def measured(self, t: float) -> None:
        """Nothing is summed up."""

    def end(self, t: float) -> None:
        """Nothing is summed up."""

    def tick(self, t: float) -> Iterator[Change]:
        for (channel, key), value in self._values.items():
            if self._said.get((channel, key)) != value:
                self._said[channel, key] = value
                yield Change(t, self._app, channel, key, value)

    def _found(self, t: float, record: Any) -> None:
        before = self._values.get(("situation", record.query), {"count": 0, "worst": 0.0})
        due = max(record.at_ns / NS, self._starts.get((record.query, record.epoch), 0.0))
        delay = round(max(0.0, t - (self._opened or 0.0) - due), 3)
        self._values["situation", record.query] = {
            "count": before["count"] + 1,
            "delay": delay,
            "worst": max(before["worst"], delay),
            "last": list(record.ancestors),
        }
