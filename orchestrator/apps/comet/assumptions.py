"""Whether what was measured in a run still is what its plan assumed: rates of events, and disconnections.

Rates are Poisson and contacts may be random, so measured values differ from the assumed ones by chance.
``departures`` names only what chance hardly explains: a count of events more than five standard deviations
away, a link that is down for much longer than its expected disconnection period, once or on average. A link
that is up more often than assumed breaks no promise and is not named.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.apps.comet.plan import Recorded

DEVIATIONS = 5.0
RATIO = 1.25
"""A rate must differ by this factor to be named, however sure it is."""
NOTICE_S = 15.0
"""Until nodes notice that a contact began or ended: so much longer is no departure."""
LONGEST = 5.0
"""Disconnection periods that a single disconnection may last: with random contacts, 1 of 150 is longer."""
FEWEST_DOWNS = 3
MINUTE = 60.0


@dataclass(frozen=True)
class MeasuredRate:
    """How many instances of an event occurred within how many seconds."""

    count: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.count / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class MeasuredLink:
    """How often and how long a node had no connection to a neighbour, and how long it had one.

    ``longest_down``: the time without a connection that has not ended counts, too.
    """

    downs: int
    mean_down: float
    longest_down: float
    mean_up: float | None = None


@dataclass(frozen=True)
class Measured:
    """``rates``: by event. ``links``: by node and neighbour."""

    rates: Mapping[str, MeasuredRate] = field(default_factory=dict)
    links: Mapping[tuple[str, str], MeasuredLink] = field(default_factory=dict)

    def link(self, one: str, other: str) -> MeasuredLink | None:
        return self.links.get((one, other)) or self.links.get((other, one))


@dataclass(frozen=True)
class Departure:
    """``subject``: an event, or a link like ``bus > base``. Rates per second, disconnections in seconds."""

    subject: str
    planned: float
    measured: float
    text: str


def departures(recorded: "Recorded", measured: Measured) -> list[Departure]:
    """Returns what no longer is as the plan assumed, in the order of the plan."""
    return [*_rate_departures(recorded, measured), *_link_departures(recorded, measured)]


def _rate_departures(recorded: "Recorded", measured: Measured) -> Iterator[Departure]:
    nodes = {event.name: node for node, config in recorded.configs.items() for event in config.events}
    for event, planned in recorded.rates.items():
        seen = measured.rates.get(event)
        if seen is None or event not in nodes or not _is_another_rate(planned, seen):
            continue
        text = f"{nodes[event]} emits {event} at {_per_minute(seen.rate)}, planned {_per_minute(planned)}"
        yield Departure(event, planned, seen.rate, text)


def _is_another_rate(planned: float, seen: MeasuredRate) -> bool:
    expected = planned * seen.seconds
    chance = DEVIATIONS * math.sqrt(expected)
    if seen.count > expected:
        return seen.count > max(RATIO * expected, expected + chance + 3)
    return seen.count < min(expected / RATIO, expected - chance)


def _link_departures(recorded: "Recorded", measured: Measured) -> Iterator[Departure]:
    for link in recorded.links:
        seen = measured.link(link.lower, link.upper)
        if seen is None or link.edp is None:
            continue
        name = f"{link.lower} > {link.upper}"
        if seen.downs >= FEWEST_DOWNS:
            most = link.edp * (RATIO + 3 / math.sqrt(seen.downs)) + NOTICE_S
            if seen.mean_down > most:
                text = f"{name} is down for {seen.mean_down:.0f} s on average, planned {link.edp:.0f} s"
                yield Departure(name, link.edp, seen.mean_down, text)
                continue
        if seen.longest_down > LONGEST * link.edp + NOTICE_S:
            text = f"{name} was down for {seen.longest_down:.0f} s at a stretch, planned {link.edp:.0f} s"
            yield Departure(name, link.edp, seen.longest_down, text)


def _per_minute(rate: float) -> str:
    return f"{rate * MINUTE:.3g} /min"
