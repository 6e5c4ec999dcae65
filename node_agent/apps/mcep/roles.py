"""A broker and a client as nodes play them: the state machine, what it reports, and what it lacks.

Times are seconds of the drives, from the beginning on.
"""

import json
import math
from collections.abc import Callable, Iterable
from typing import Protocol

from node_agent.apps.mcep.broker import Broker
from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.client import Client
from node_agent.apps.mcep.config import InterestConfig, deployment_of, homes_of, readings_of
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Circle, Point, bounds, middle
from node_agent.apps.mcep.messages import Answered, Located, Said, Seen, Sent
from node_agent.apps.mcep.model import Event as McepEvent
from node_agent.apps.mcep.model import Value, quality
from node_agent.apps.mcep.moving.report import MovesReport
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.reuse.deployed import split_key
from node_agent.apps.mcep.reusing.telemetry import ManagersReport
from node_agent.apps.mcep.sensing import Reading
from node_agent.apps.mcep.telemetry import (
    ENDLESS_NS,
    MOST_ANCESTORS,
    NODE,
    InterestBroker,
    InterestClient,
    InterestSwitched,
    SensorRead,
    SituationFound,
    consumer,
    home,
    sensor,
)
from node_agent.model.telemetry import Event

Record = Callable[[Event], None]
NS = 1_000_000_000
PATIENCE_S, PATIENCE_READINGS = 3.0, 3
"""Best effort waits so long, and so many readings, for clients and brokers that say nothing."""
NAMED = 5
"""So many names are told of those that somebody waits for."""


class Role(Protocol):
    def take(self, sender: str, said: Said) -> list[Sent]:
        """Raises McepError if the sender said what cannot be."""
        ...

    def arrived(self, to: str, said: Said) -> list[Sent]:
        """A node has taken what was sent to it."""
        ...

    def sample(self) -> None: ...

    def waits_for(self) -> str:
        """Why nothing goes on, in words; empty if it does not wait for anybody."""
        ...


class BrokerRole:
    """``tick_s``: how often ``tick`` is called."""

    def __init__(self, config: InterestConfig, record: Record, tick_s: float) -> None:
        waits_s = max(PATIENCE_S, PATIENCE_READINGS * config.settings.every)
        self.broker = Broker(config.node, deployment_of(config.settings), math.ceil(waits_s / tick_s))
        self._limits = config.settings.limits
        self._record = record
        self._managers = ManagersReport(record)
        self._own = [each.name for each in config.settings.queries if each.home == config.node]
        self._told = dict.fromkeys(self._own, 0)
        """By query, how many switches have been recorded."""
        self._moves = MovesReport(config.settings, config.node, record)
        self.broker.report_to(self._moves.happened)

    def take(self, sender: str, said: Said) -> list[Sent]:
        sent = self.broker.receive(sender, said)
        if isinstance(said, Located | Answered):  # what else may end a switch is told with the next tick
            self._report()
        return sent

    def arrived(self, to: str, said: Said) -> list[Sent]:
        return []

    def tick(self) -> list[Sent]:
        sent = self.broker.tick()
        self._report()
        return sent

    def load(self, outgoing: int) -> float:
        """How full the node is; ``outgoing``: messages that wait for other nodes. 1: it takes nothing from
        clients."""
        waiting = self.broker.done().waiting + outgoing
        return max(waiting / self._limits.waiting, self.broker.stored / self._limits.stored)

    def sample(self) -> None:
        broker, done = self.broker, self.broker.done()
        numbers = (broker.stored, done.waiting, done.streamed, done.skipped, done.processed, done.reused)
        self._record(InterestBroker(NODE, _ns(broker.arrived), *numbers, broker.refused))
        self._moves.sample(broker.moving)
        self._managers.sample(broker.managers)

    def waits_for(self) -> str:
        for query in self._own:
            if missing := self.broker.unanswered(query):
                return f"a switch of {query} waits for {_named(missing)}"
        return f"waits for the word of {_named(self.broker.waits_for)}" if self.broker.arrived < GONE else ""

    def _report(self) -> None:
        for query in self._own:
            markers, how = self.broker.markers(query), self.broker.how(query)
            for number in range(self._told[query], len(markers)):
                came = how[number] if number < len(how) else "moved"
                self._record(_switched(query, markers[number], came))
            self._told[query] = len(markers)


class ClientRole:
    def __init__(self, config: InterestConfig, record: Record) -> None:
        settings = config.settings
        self.client = Client(config.node, deployment_of(settings).areas, homes_of(settings, config.node))
        self.readings = readings_of(config)
        self._record = record
        self._found: dict[str, int] = {}
        self._at = -math.inf
        """All that was seen before this has been told."""

    def read(self, reading: Reading) -> list[Sent]:
        self._at = reading.t
        place = Point(*reading.place)
        return self._saw(reading) + self.client.move(place, reading.t)

    def _saw(self, reading: Reading) -> list[Sent]:
        if reading.is_silent:
            return []
        event, sent = self.client.see(reading.type, reading.t, reading.place, reading.attributes)
        value = next(map(str, reading.attributes.values()), "")
        place = round(reading.place.x, 3), round(reading.place.y, 3)
        self._record(SensorRead(sensor(event.type), event.type, event.seq, _ns(event.t), *place, value))
        return sent

    def leave(self, t: float) -> list[Sent]:
        self._at = GONE
        return self.client.leave(t)

    def take(self, sender: str, said: Said) -> list[Sent]:
        before = len(self.client.results)
        sent = self.client.receive(sender, said)
        for query, each in self.client.results[before:]:
            self._report(query, each)
        self.client.results.clear()
        return sent + self.client.tell(self._at)

    def arrived(self, to: str, said: Said) -> list[Sent]:
        if not isinstance(said, Seen):
            return []
        self.client.acknowledged(to, said.events[-1].seq)
        return self.client.tell(self._at)

    def sample(self) -> None:
        client = self.client
        self._record(InterestClient(NODE, _ns(client.told), client.seen, client.handovers, client.unplaced))

    def waits_for(self) -> str:
        return ""

    def _report(self, query: str, found: Delivered) -> None:
        number = self._found[query] = self._found.get(query, 0) + 1
        event, place = found.event, middle_of(found)
        by, similarity = _shared(query, event)
        ancestors = tuple(f"{source}#{seq}" for source, seq in sorted(event.provenance)[:MOST_ANCESTORS])
        facts = json.dumps({name: _short(value) for name, value in sorted(event.attributes.items())})
        epochs = found.epoch, event.born
        self._record(
            SituationFound(
                consumer(query), query, number, event.type, _ns(event.t), *epochs, found.historical,
                *place, facts, ancestors, by, *similarity,
            )
        )  # fmt: skip


def middle_of(found: Delivered) -> tuple[float, float]:
    """The middle of the place of a result."""
    x, y = middle(found.event.place)
    return round(x, 3), round(y, 3)


def _shared(query: str, event: McepEvent) -> tuple[str | None, tuple[float | None, float | None]]:
    """The other query whose selection gave a result, and how well that stands for the own one."""
    if event.shared is None:
        return None, (None, None)
    by, _ = split_key(event.shared.origin[0])
    found = quality(event.wanted, event.provenance)
    own = by in ("", query)
    return None if own else by, (round(found.precision, 6), round(found.recall, 6))


def _switched(query: str, marker: Marker, how: str) -> InterestSwitched:
    region, since = marker.region, min(marker.points.values(), default=marker.t)
    x = y = radius = None
    if region is not None:
        box = bounds(region)
        x, y = round((box.x0 + box.x1) / 2, 3), round((box.y0 + box.y1) / 2, 3)
        radius = region.radius if isinstance(region, Circle) else (box.x1 - box.x0) / 2
    return InterestSwitched(
        home(query), query, marker.epoch, _ns(marker.t), _ns(since), x, y, radius, how if region else ""
    )


def _short(value: Value) -> Value:
    return round(value, 6) if isinstance(value, float) else value


def _ns(t: float) -> int:
    """Nanoseconds; 0 for what is before the beginning."""
    return max(0, round(min(t * NS, ENDLESS_NS))) if t > -math.inf else 0


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED} others" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more
