"""Measures what a plan assumed, from the records of a run: rates of events, and disconnections of links."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from node_agent.apps.comet.telemetry import EventContact, EventOccurred
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.comet.assumptions import Measured, MeasuredLink, MeasuredRate
from orchestrator.apps.comet.plan import Recorded

_OCCURRED, _CONTACT = tag_of(EventOccurred), tag_of(EventContact)
KINDS = (_OCCURRED, _CONTACT)


@dataclass
class LinkTimes:
    """Sums of the times that a node had no connection to a neighbour, or one.

    ``first_s``: the first time without one. ``since``: since when there is none; None while there is one.
    """

    downs: int = 0
    ups: int = 0
    first_s: float = 0.0
    down_s: float = 0.0
    up_s: float = 0.0
    longest_s: float = 0.0
    since: float | None = 0.0

    def seen(self, now: float) -> MeasuredLink:
        open_s = 0.0 if self.since is None else now - self.since
        mean_s = self.first_s if self.downs else open_s
        if self.downs > 1:  # nobody knows when the first one began
            mean_s = (self.down_s - self.first_s) / (self.downs - 1)
        mean_up = self.up_s / self.ups if self.ups else None
        return MeasuredLink(self.downs, mean_s, max(self.longest_s, open_s), mean_up)


class Measuring:
    """Takes records in the order of each node; times are seconds of the run."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        events = [event.name for config in recorded.configs.values() for event in config.events]
        self._counts = dict.fromkeys(events, 0)
        self._numbers = dict.fromkeys(events, -1)
        self._links = {
            (node, other): LinkTimes()
            for node, each in recorded.configs.items()
            for other in each.plan.neighbours
        }

    def take(self, node: str, t: float, record: Any) -> None:
        if record.kind == _OCCURRED and record.event in self._counts:
            if record.number > self._numbers[record.event]:  # one that was killed may tell it again
                self._numbers[record.event] = record.number
                self._counts[record.event] += 1
        elif record.kind == _CONTACT:
            link = self._links[node, record.neighbour]
            lasted = record.lasted_ns / 1e9
            if record.up:
                if link.downs == 0:
                    link.first_s = lasted
                link.downs += 1
                link.down_s += lasted
                link.longest_s = max(link.longest_s, lasted)
                link.since = None
            else:
                link.ups += 1
                link.up_s += lasted
                link.since = t

    def measured(self, opened: float, now: float) -> Measured:
        """``opened``: when sources opened; ``now``: until when records were taken."""
        rates = measured_rates(self._recorded, self._counts, opened, now)
        return Measured(rates, {pair: link.seen(now) for pair, link in self._links.items()})


def measured_rates(
    recorded: Recorded, counts: Mapping[str, int], opened: float, now: float
) -> dict[str, MeasuredRate]:
    """``counts``: by event, how many instances occurred from ``opened`` until ``now``."""
    found = {}
    for config in recorded.configs.values():
        for event in config.events:
            last = now if event.end is None else min(now, opened + event.end)
            seconds = last - (opened + event.begin)
            if seconds > 0:
                found[event.name] = MeasuredRate(counts.get(event.name, 0), seconds)
    return found


def with_measured(rates: Mapping[str, float], measured: Measured) -> dict[str, float]:
    """Returns rates with those that were measured in place of the others.

    An event that never occurred is taken as once in twice the time: a rate of 0 cannot be planned.
    """
    found = dict(rates)
    for event, seen in measured.rates.items():
        if event in found and seen.seconds > 0:
            found[event] = max(seen.count, 0.5) / seen.seconds
    return found
